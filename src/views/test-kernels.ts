import { document, type Document } from '../model/document.js';
import type { KernelResult, KernelsResult } from '../model/documents/kernels.js';
import { figure, missing } from '../model/figure.js';

const none = missing('no_samples', 'no sample fell into the case');

/** A case on a GPU: 10 µs, 50 % of its roofline. */
export function kernelResult(change: Partial<KernelResult> = {}): KernelResult {
  return {
    case: 'gemm bfloat16 8x28672x4096',
    kernel: 'gemm',
    class: 'gemm',
    backend: null,
    dtype: 'bfloat16',
    params: { m: 8, n: 28672, k: 4096 },
    outcome: 'measured',
    text: null,
    flops: 1_879_048_192,
    bytes: 235_405_312,
    runs: 100,
    mean_ns: figure(98_000, 'ns', 'runs of one process', { n: 100, sd: 1000, ci95: [97_804, 98_196] }),
    median_ns: 98_086,
    min_ns: 97_000,
    max_ns: 101_000,
    sd_ns: 1000,
    p5_ns: 97_100,
    p95_ns: 99_500,
    bytes_per_s: 2.4e12,
    flops_per_s: 19.157e12,
    intensity: 7.98,
    roof_ns: figure(49_043, 'ns', 'bytes / bandwidth'),
    working_set_bytes: 2 ** 30,
    roof_level: null,
    roof_bytes_per_s: figure(4.8e12, 'B/s', 'measured'),
    roof_share: figure(0.5, 'ratio', 'bytes / bandwidth; over the median'),
    bound: 'memory',
    method: 'graph',
    per_sample: 64,
    rotated_bytes: 2 ** 30,
    peak_memory_bytes: figure(2 ** 30, 'B', 'peak of the allocator during the case'),
    max_error: 2e-3,
    clock_mhz: figure(1980, 'MHz', 'telemetry: sm_clock_mhz', { n: 4 }),
    power_w: none,
    throttled_by: [],
    ...change,
  };
}

/** Two operations and a case that could not be measured, on an H200. */
export function kernelsDocument(change: Partial<KernelsResult> = {}): Document<KernelsResult> {
  const attention = kernelResult({
    case: 'attention bfloat16 8x32x8x128x1x2048 flash',
    kernel: 'attention',
    class: 'attention',
    backend: 'flash',
    params: { batch: 8, heads: 32, kv_heads: 8, head_dim: 128, new_tokens: 1, context: 2048 },
    bound: 'latency',
    roof_share: missing('no_roofline', 'the roofs of this GPU were not measured'),
  });
  const lost = kernelResult({
    case: 'softmax bfloat16 1x2',
    kernel: 'softmax',
    class: 'elementwise',
    params: { rows: 1, columns: 2 },
    outcome: 'out_of_memory',
    text: 'It needs at least 300.0 GiB; 139.0 GiB are free on cuda:0.',
    runs: 0,
    mean_ns: missing('out_of_memory', 'it was not measured: out of memory'),
    median_ns: null,
    flops_per_s: null,
    bytes_per_s: null,
  });
  return document('kernels', '1.0', {
    session: {
      id: '20261121-0900-kernels',
      name: null,
      title: 'kernels · 3 kernels bfloat16 · PyTorch NVIDIA H200',
      started_at: '2026-11-21T09:00:00.000Z',
      status: 'complete',
    },
    plan: {
      engine: { name: 'pytorch', version: '2.11.0' },
      device: 'cuda:0',
      device_facts: {
        name: 'NVIDIA H200',
        device: 'cuda:0',
        framework: 'torch 2.11.0',
        sm_count: 132,
        l2_bytes: 60 * 2 ** 20,
        memory_bytes: 139 * 2 ** 30,
        compute_capability: '9.0',
        driver: '580.1',
      },
      threads: null,
      scope: 'gpu0',
      protocol: {
        runs: 100,
        max_runs: 1000,
        max_seconds: 2,
        target_half_width: 0.01,
        graph: 'auto',
        check: true,
        seed: 0,
      },
    },
    model: null,
    roofs: {
      compute: [
        { dtype: 'bfloat16', flops_per_s: figure(780e12, 'FLOP/s', 'measured on NVIDIA H200, 2026-11-21') },
      ],
      levels: [],
      bytes_per_s: figure(4.3e12, 'B/s', 'measured on NVIDIA H200, 2026-11-21'),
      launch_ns: figure(2500, 'ns', 'measured on NVIDIA H200, 2026-11-21'),
    },
    cases: [kernelResult(), attention, lost],
    maps: [
      {
        series: 'gemm',
        fixed: '',
        x: { name: 'batch size', values: ['8', '16'] },
        y: { name: 'sequence length', values: ['1', '2'] },
        cells: [
          { x: 0, y: 0, case: kernelResult().case },
          { x: 1, y: 1, case: lost.case },
        ],
      },
    ],
    steps: [],
    ...change,
  });
}
