import type { DType } from '../model/dtype.js';
import { figure, missing, type Figure, type MissingFigure } from '../model/figure.js';
import type { Work } from './work-totals.js';

/** FLOP/s of each dtype; null or absent means unknown. */
export type PeakFlops = Partial<Record<DType, number | null>>;

const noTime = missing('no_time', 'the stage has no measured duration');
const noBandwidth = missing('unknown_peak', 'the memory bandwidth of this device is unknown');

/**
 * Model FLOPs utilization (PaLM, arXiv 2204.02311, appendix B) for several dtypes: the time at each dtype's peak, Σ
 * F_d/P_d, over the measured time. A value over 1 is impossible (wrong model, dtype or peak); it is returned
 * unchanged and shown as invalid.
 */
export function mfuOfWork(work: Work, seconds: number, peaks: PeakFlops): Figure {
  const needed = computeSeconds(work, peaks);
  if (typeof needed !== 'number') return needed;
  if (!(seconds > 0)) return noTime;
  const dtypes = Object.keys(work.flops_by_dtype).join(' + ');
  return figure(needed / seconds, 'ratio', `model FLOPs (${dtypes}) / time / peak FLOP/s of each dtype`);
}

/** Model bandwidth utilization, necessary bytes / time / peak bandwidth. Over 1: see `mfuOfWork`. */
export function mbu(bytes: number, seconds: number, bandwidthBytesPerS: number | null): Figure {
  if (bandwidthBytesPerS === null || !(bandwidthBytesPerS > 0)) return noBandwidth;
  if (!(seconds > 0)) return noTime;
  return figure(bytes / seconds / bandwidthBytesPerS, 'ratio', 'necessary bytes / time / bandwidth');
}

/** FLOP per byte moved; Infinity if nothing is moved, 0 if there is no work at all. */
export function arithmeticIntensity(flops: number, bytes: number): number {
  return bytes === 0 && flops === 0 ? 0 : flops / bytes;
}

/** Seconds at peak: Σ over dtypes of FLOPs / peak. Missing if a dtype's peak is unknown. */
export function computeSeconds(work: Pick<Work, 'flops_by_dtype'>, peaks: PeakFlops): number | MissingFigure {
  let seconds = 0;
  for (const [dtype, flops] of Object.entries(work.flops_by_dtype) as [DType, number][]) {
    const peak = peaks[dtype] ?? null;
    if (peak === null || !(peak > 0)) {
      return missing('unknown_peak', `the peak FLOP/s of this device in ${dtype} is unknown`);
    }
    seconds += flops / peak;
  }
  return seconds;
}

export interface Bound {
  bound: 'compute' | 'memory';
  compute_s: number;
  memory_s: number;
  /** The minimum time on this hardware: the longer of both. */
  roofline_s: number;
}

/** Whether arithmetic or memory traffic takes longer at the peaks, and how long. A tie is compute-bound. */
export function boundOf(
  work: Pick<Work, 'flops_by_dtype' | 'bytes_total'>,
  peaks: PeakFlops,
  bandwidthBytesPerS: number | null,
): Bound | MissingFigure {
  const compute_s = computeSeconds(work, peaks);
  if (typeof compute_s !== 'number') return compute_s;
  if (bandwidthBytesPerS === null || !(bandwidthBytesPerS > 0)) return noBandwidth;
  const memory_s = work.bytes_total / bandwidthBytesPerS;
  const bound = compute_s >= memory_s ? 'compute' : 'memory';
  return { bound, compute_s, memory_s, roofline_s: Math.max(compute_s, memory_s) };
}
