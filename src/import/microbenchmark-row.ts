import type { MicrobenchmarkLine } from '../model/record.js';
import type { Row } from '../model/tables.js';
import { mean, percentile, standardDeviation } from '../model/statistics.js';

/** Rate is FLOP/s where the operation has FLOPs, else B/s. Statistics are over the runs; sd is over n − 1. */
export function microbenchmarkRow(
  line: MicrobenchmarkLine,
  sessionNs: (monotonicNs: number) => number,
): Row<'microbenchmarks'> {
  const { samples_ns: samples, flops, bytes, params } = line;
  const sorted = samples.toSorted((a, b) => a - b);
  const n = samples.length;
  const quantile = (share: number) => (n > 0 ? percentile(sorted, share) : null);
  const median = quantile(0.5);
  return {
    device: line.device,
    name: line.kernel,
    dtype: line.dtype,
    shape: Object.values(params).join('x'),
    threads: line.threads,
    bytes,
    flops,
    runs: n,
    median_ns: median,
    min_ns: sorted[0] ?? null,
    sd_ns: n > 1 ? standardDeviation(samples) : null,
    value: median === null || median === 0 ? null : ((flops > 0 ? flops : bytes) / median) * 1e9,
    unit: flops > 0 ? 'FLOP/s' : 'B/s',
    case_id: line.case,
    backend: line.backend,
    params: JSON.stringify(params),
    outcome: line.outcome,
    text: line.text,
    start_ns: sessionNs(line.t_ns),
    end_ns: sessionNs(line.end_ns),
    mean_ns: n > 0 ? mean(samples) : null,
    max_ns: sorted.at(-1) ?? null,
    p5_ns: quantile(0.05),
    p95_ns: quantile(0.95),
    samples_ns: JSON.stringify(samples),
    method: line.method,
    per_sample: line.per_sample,
    rotated_bytes: line.rotated_bytes,
    peak_memory_bytes: line.peak_memory_bytes,
    max_error: line.max_error,
  };
}
