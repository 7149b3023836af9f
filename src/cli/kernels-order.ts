import type { KernelCapture } from '../capture/kernels/capture.js';
import type { KernelCase, KernelOrder } from '../model/kernels.js';
import type { ChosenCases } from './kernels-cases.js';
import type { ChosenDevice } from './kernels-device.js';
import type { KernelsOptions } from './kernels-option-values.js';

/** The request and its resolved cases. */
export interface MeasuredKernels {
  options: KernelsOptions;
  device: ChosenDevice;
  chosen: ChosenCases;
  capture: KernelCapture;
}

export const executionId = 'kernels';
export const host = 'localhost';
/** Stop when half of the 95 % interval of the mean is at most this share of the mean. */
const target_half_width = 0.01;
/** Enough runs to separate recurring work from one-time work. */
const tracedRuns = 3;

export function orderOf(
  cases: readonly KernelCase[],
  { runner }: ChosenDevice,
  options: KernelsOptions,
  traceFolder: string | null = null,
): KernelOrder {
  return {
    v: 1,
    execution_id: executionId,
    device: runner.device,
    cases: [...cases],
    runs: options.runs,
    max_runs: 10 * options.runs,
    max_seconds: options.maxSeconds,
    target_half_width,
    graph: options.graph ? 'auto' : 'never',
    check: options.check,
    seed: options.seed,
    trace: traceFolder === null ? null : { folder: traceFolder, runs: tracedRuns },
  };
}
