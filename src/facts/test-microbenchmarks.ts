import type { KernelPlan } from '../model/documents/kernels.js';
import type { KernelCase } from '../model/kernels.js';
import type { Row } from '../model/tables.js';

/** Three runs, on a CPU. */
export const protocol = {
  runs: 3,
  max_runs: 30,
  max_seconds: 1,
  target_half_width: 0.01,
  graph: 'auto' as const,
  check: true,
  seed: 0,
};

export const onCpu: KernelPlan = {
  engine: { name: 'onnxruntime', version: '1.30.0' },
  device: 'cpu',
  device_facts: null,
  threads: 1,
  scope: null,
  protocol,
  points: [],
  traces: [],
  model: null,
};

/** Three runs of 90 %, 100 % and 110 % of `ns`. */
export function row(
  kernel: KernelCase,
  ns: number,
  change: Row<'microbenchmarks'> = {},
): Row<'microbenchmarks'> {
  return {
    execution_id: 'kernels',
    name: kernel.kernel,
    case_id: kernel.case,
    dtype: kernel.dtype,
    backend: kernel.backend,
    params: JSON.stringify(kernel.params),
    outcome: 'measured',
    flops: kernel.flops,
    bytes: kernel.bytes,
    runs: 3,
    mean_ns: ns,
    median_ns: ns,
    min_ns: 0.9 * ns,
    max_ns: 1.1 * ns,
    sd_ns: 0.1 * ns,
    p5_ns: 0.91 * ns,
    p95_ns: 1.09 * ns,
    method: 'events',
    per_sample: 1,
    start_ns: 0,
    end_ns: 1e9,
    ...change,
  };
}
