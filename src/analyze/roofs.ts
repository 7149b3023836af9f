import type { BandwidthPoint, MachineRoofline } from '../model/documents/roofline.js';
import type { DType } from '../model/dtype.js';
import type { PeakFlops } from '../llm/utilization.js';

/** Measured peak FLOP/s by dtype. */
export function computePeaks(roofline: MachineRoofline): PeakFlops {
  return Object.fromEntries(roofline.compute.map((peak) => [peak.dtype as DType, peak.flops_per_s]));
}

/**
 * Read bandwidth at a working set: between two measured sizes linear over the logarithm of the size, outside them the
 * nearest. The level named is the one that holds a working set of that size.
 */
export function bandwidthAt(
  roofline: MachineRoofline,
  workingSetBytes: number,
): { bytesPerS: number; level: string } {
  const points = roofline.bandwidth;
  const above = points.findIndex((point) => point.working_set_bytes >= workingSetBytes);
  if (above === 0) return at(points[0]!);
  if (above === -1) return beyond(roofline, workingSetBytes, points.at(-1)!);
  const low = points[above - 1]!;
  const high = points[above]!;
  const share =
    Math.log(workingSetBytes / low.working_set_bytes) /
    Math.log(high.working_set_bytes / low.working_set_bytes);
  const bytesPerS = low.bytes_per_s + share * (high.bytes_per_s - low.bytes_per_s);
  return {
    bytesPerS,
    level: low.level === high.level ? high.level : levelOf(roofline, workingSetBytes, low, high),
  };
}

function at(point: BandwidthPoint): { bytesPerS: number; level: string } {
  return { bytesPerS: point.bytes_per_s, level: point.level };
}

/** Past the largest size measured (memory was short): its rate, which is too high if that size still fitted a cache. */
function beyond({ last_level_cache_bytes: llc }: MachineRoofline, bytes: number, last: BandwidthPoint) {
  const other = last.level !== 'DRAM' && llc !== null && bytes > llc;
  return { bytesPerS: last.bytes_per_s, level: other ? `${last.level}, the largest measured` : last.level };
}

/** Between two levels: the last-level cache's size tells whether a set is still in it; other sizes are not known. */
function levelOf(
  { last_level_cache_bytes: llc }: MachineRoofline,
  bytes: number,
  low: BandwidthPoint,
  high: BandwidthPoint,
): string {
  return high.level === 'DRAM' && llc !== null && bytes <= llc ? low.level : high.level;
}
