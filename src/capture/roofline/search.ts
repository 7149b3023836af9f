import type { GpuComputePeak } from '../../model/documents/gpu-roofline.js';
import type { KernelCase } from '../../model/kernels.js';
import type { MicrobenchmarkLine } from '../../model/record.js';
import { firstCases, gemmDtypes, gemmLimits, type PlannedDevice } from './gpu-plan.js';
import { type Gemm, gemmCase, neighborGemms } from './gemm-search.js';
import { fastestLine } from './microbenchmark-lines.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';

/** Runs cases in one process and returns their lines, with any outcome. */
type RunCases = (round: string, cases: KernelCase[]) => Promise<MicrobenchmarkLine[]>;

/**
 * All measurements of one device: everything once in a first round, then the neighbors of each dtype's fastest GEMM.
 * A stopped round ends the search with the results so far.
 */
export async function searchRoofs(
  device: PlannedDevice,
  run: RunCases,
  signal: AbortSignal,
): Promise<MicrobenchmarkLine[]> {
  const first = await run('first', firstCases(device));
  const second = secondCases(device, first);
  if (signal.aborted || second.length === 0) return first;
  return [...first, ...(await run('refined', second))];
}

/** Neighbors of each dtype's fastest GEMM; dtypes without a measurement have none. */
function secondCases(device: PlannedDevice, first: readonly MicrobenchmarkLine[]): KernelCase[] {
  const limits = gemmLimits(device);
  const gemms = first.filter((line) => line.kernel === 'gemm');
  return gemmDtypes(device).flatMap((dtype) => {
    const best = fastestLine(gemms.filter((line) => line.dtype === dtype));
    return best ? neighborGemms(gemmOf(best), gemms.map(gemmOf), limits).map(gemmCase) : [];
  });
}

function gemmOf({ dtype, params }: MicrobenchmarkLine): Gemm {
  return { dtype: dtype as PeakDType, m: params['m']!, n: params['n']!, k: params['k']! };
}

/** Cases to compare GPUs of the same name: the fastest GEMM of each dtype, copy and read. */
export function comparisonCases(
  lines: readonly MicrobenchmarkLine[],
  compute: readonly GpuComputePeak[],
): KernelCase[] {
  const names = new Set(compute.map((peak) => peak.case));
  const patterns = ['copy', 'read'].map((pattern) =>
    fastestLine(lines.filter((line) => line.kernel === pattern)),
  );
  return [...lines.filter((line) => names.has(line.case)), ...patterns.filter((line) => line !== null)].map(
    ({ case: name, kernel, backend, dtype, params, flops, bytes }) =>
      ({ case: name, kernel, backend, dtype, params, flops, bytes }) as KernelCase,
  );
}
