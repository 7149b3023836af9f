import type { KernelCase } from '../../model/kernels.js';
import type { MicrobenchmarkLine } from '../../model/record.js';

/** A measured line of a case with the given times of one operation, ns. */
export function measuredLine(
  kernelCase: KernelCase,
  samples_ns: number[],
  change: Partial<MicrobenchmarkLine> = {},
): MicrobenchmarkLine {
  return {
    v: 1,
    type: 'microbenchmark',
    execution_id: 'cuda0-first',
    rank: 0,
    pid: 1,
    t_ns: 1e9,
    end_ns: 2e9,
    ...kernelCase,
    device: 0,
    threads: null,
    outcome: 'measured',
    text: null,
    samples_ns,
    method: 'events',
    per_sample: 1,
    rotated_bytes: null,
    peak_memory_bytes: null,
    max_error: null,
    ...change,
  };
}

export function unmeasuredLine(
  kernelCase: KernelCase,
  outcome: MicrobenchmarkLine['outcome'],
  text: string,
): MicrobenchmarkLine {
  return measuredLine(kernelCase, [], { outcome, text });
}
