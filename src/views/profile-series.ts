import type { OpClass } from '../model/classes.js';
import type { Breakdown, LatencyResult, ProfileResult } from '../model/documents/profile.js';
import type { BandwidthPoint, MachineRoofline } from '../model/documents/roofline.js';

export const stagesWithOperators = (result: ProfileResult): { kind: string; breakdown: Breakdown }[] =>
  result.stages.flatMap(({ kind, breakdown }) => (breakdown ? [{ kind, breakdown }] : []));

/** "2.3": the third timed repeat of the second process launch. */
export function repeatLabels(repeats: LatencyResult['per_repeat']): string[] {
  const launches = [...new Set(repeats.map(({ launch }) => launch))];
  const counts = new Map<number, number>();
  return repeats.map(({ launch }) => {
    const nth = (counts.get(launch) ?? 0) + 1;
    counts.set(launch, nth);
    return `${launches.indexOf(launch) + 1}.${nth}`;
  });
}

/** What the intervals of the run are over. */
export const intervalsOver = ({ launches }: LatencyResult): string =>
  launches > 1 ? 'launches' : 'the repeats of one launch';

/** A stage, or a class of a stage, on the roofline. */
export interface RooflinePoint {
  stage: string;
  /** null: the whole stage. */
  class: OpClass | null;
  intensity: number;
  flops_per_s: number;
}

/** Points with both necessary FLOPs and bytes; copies and look-ups compute nothing and have none. */
export function rooflinePoints(result: ProfileResult): RooflinePoint[] {
  return result.stages.flatMap((stage) => {
    const points: RooflinePoint[] = [];
    const { flops, duration_ms, intensity_flop_per_byte: intensity } = stage;
    if (flops.value !== null && duration_ms.value !== null && intensity.value !== null && flops.value > 0) {
      const flops_per_s = flops.value / (duration_ms.value / 1e3);
      points.push({ stage: stage.kind, class: null, intensity: intensity.value, flops_per_s });
    }
    for (const row of stage.breakdown?.by_class ?? []) {
      if (!row.intensity_flop_per_byte || !row.achieved_flops_per_s) continue;
      points.push({
        stage: stage.kind,
        class: row.class,
        intensity: row.intensity_flop_per_byte,
        flops_per_s: row.achieved_flops_per_s,
      });
    }
    return points;
  });
}

/** The two bandwidth rooflines that bound a model: last-level cache and DRAM, each at its largest working set. */
export function bandwidthRoofs(roofline: MachineRoofline): BandwidthPoint[] {
  const largest = new Map<string, BandwidthPoint>();
  for (const point of roofline.bandwidth) {
    const largestPoint = largest.get(point.level);
    if (!largestPoint || point.working_set_bytes > largestPoint.working_set_bytes)
      largest.set(point.level, point);
  }
  return [...largest.values()].toSorted((a, b) => b.working_set_bytes - a.working_set_bytes).slice(0, 2);
}
