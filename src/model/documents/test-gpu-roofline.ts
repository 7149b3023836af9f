import { figure, missing } from '../figure.js';
import type { GpuRoofline, MeasuredGpu } from './gpu-roofline.js';

const measurement = (name: string, median_ns: number) => ({
  case: name,
  method: 'events' as const,
  runs: 100,
  median_ns,
  sd_share: 0.004,
  sm_clock_mhz: 1755,
  power_w: 612,
  throttled_by: [] as string[],
});

const sheet = (value: number, unit: string) => figure(value, unit, 'a data sheet (2024)');

/** An H200 with round figures: 800 TFLOP/s bfloat16, 50 float32, 4 TB/s. */
export function exampleGpu(change: Partial<MeasuredGpu> = {}): MeasuredGpu {
  const peak = (dtype: string, flops_per_s: number, sheetPeak: number) => ({
    ...measurement(`gemm-${dtype}-8192x8192x8192`, (2 * 8192 ** 3 * 1e9) / flops_per_s),
    dtype,
    flops_per_s,
    m: 8192,
    n: 8192,
    k: 8192,
    sheet: sheet(sheetPeak, 'FLOP/s'),
    of_sheet: figure(flops_per_s / sheetPeak, 'ratio', 'measured / a data sheet (2024)'),
    ridge_flop_per_byte: flops_per_s / 4e12,
  });
  const pattern = (name: 'copy' | 'read', bytes_per_s: number) => ({
    ...measurement(`${name}-bytes1073741824`, (2 ** 30 * 1e9) / bytes_per_s),
    pattern: name,
    bytes_per_s,
    array_bytes: 2 ** 30,
    sheet: sheet(4.8e12, 'B/s'),
    of_sheet: figure(bytes_per_s / 4.8e12, 'ratio', 'measured / a data sheet (2024)'),
  });
  const latency = (name: string, ns: number) => ({ ...measurement(name, ns), ns });
  return {
    index: 0,
    name: 'NVIDIA H200',
    pci_id: '10de:2335',
    compute_capability: '9.0',
    sm_count: 132,
    l2_bytes: 60 * 2 ** 20,
    memory_bytes: 150_000_000_000,
    power_limit_w: 700,
    mig_profile: null,
    sheet: 'NVIDIA H200 Tensor Core GPU data sheet (SXM) (2024)',
    scope: 'full',
    compute: [
      peak('float32', 50e12, 67e12),
      {
        ...peak('bfloat16', 800e12, 989e12),
        throttled_by: ['sw_power_cap'],
      },
    ],
    bandwidth: [pattern('copy', 3.9e12), pattern('read', 4e12)],
    memory_bytes_per_s: 4e12,
    l2: { ...measurement('l2-read-bytes16777216', 2000), bytes_per_s: 8e12, array_bytes: 16 * 2 ** 20 },
    launch: latency('launch-host', 2400),
    launch_device: latency('launch-device', 1300),
    launch_round_trip: latency('launch-round-trip', 9000),
    graph_node: latency('graph-node', 1100),
    host_links: [
      {
        ...measurement('host-to-device-bytes268435456-pinned1', 4.9e6),
        direction: 'host-to-device',
        pinned: true,
        bytes: 2 ** 28,
        bytes_per_s: 55e9,
        sheet: missing('no_link', 'the data sheet states no PCIe generation'),
        of_sheet: missing('no_link', 'the data sheet states no PCIe generation'),
      },
    ],
    tried: [{ dtype: 'bfloat16', m: 8192, n: 8192, k: 8192, flops_per_s: 800e12, outcome: 'measured' }],
    ...change,
  };
}

export function exampleGpuRoofline(change: Partial<GpuRoofline> = {}): GpuRoofline {
  const point = (bytes: number, ns: number) => ({
    ...measurement(`all-reduce-bytes${bytes}`, ns),
    bytes,
    algorithm_bytes_per_s: (bytes / ns) * 1e9,
    bus_bytes_per_s: (bytes / ns) * 1e9,
  });
  return {
    framework: 'torch 2.11.0+cu130',
    driver: '580.159',
    measured_at: '2026-11-21T09:00:00.000Z',
    seconds: 52,
    gpus: [exampleGpu(), exampleGpu({ index: 1, scope: 'compared' })],
    collectives: {
      operation: 'all-reduce',
      ranks: 2,
      points: [point(1024, 20_000), point(2 ** 30, 3e6)],
      latency_ns: 20_000,
      bus_bytes_per_s: (2 ** 30 / 3e6) * 1e9,
      sheet: sheet(450e9, 'B/s'),
      of_sheet: figure(((2 ** 30 / 3e6) * 1e9) / 450e9, 'ratio', 'measured / a data sheet (2024)'),
    },
    issues: [],
    ...change,
  };
}
