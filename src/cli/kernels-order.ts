import type { KernelCapture } from '../capture/kernels/capture.js';
import type { KernelCase, KernelOrder } from '../model/kernels.js';
import type { ChosenCases } from './kernels-cases.js';
import type { ChosenDevice } from './kernels-device.js';
import type { KernelsTyped } from './kernels-typed.js';

/** The request and its resolved cases. */
export interface MeasuredKernels {
  typed: KernelsTyped;
  device: ChosenDevice;
  chosen: ChosenCases;
  capture: KernelCapture;
}

export const executionId = 'kernels';
export const host = 'localhost';
/** Stop when half of the 95 % interval of the mean is below this. */
const narrow = 0.01;
/** Enough runs to separate recurring work from one-time work. */
const tracedRuns = 3;

export function orderOf(
  cases: readonly KernelCase[],
  { runner }: ChosenDevice,
  typed: KernelsTyped,
  traceFolder: string | null = null,
): KernelOrder {
  return {
    v: 1,
    execution_id: executionId,
    device: runner.device,
    cases: [...cases],
    runs: typed.runs,
    max_runs: 10 * typed.runs,
    max_seconds: typed.maxSeconds,
    narrow,
    graph: typed.graph ? 'auto' : 'never',
    check: typed.check,
    seed: typed.seed,
    trace: traceFolder === null ? null : { folder: traceFolder, runs: tracedRuns },
  };
}
