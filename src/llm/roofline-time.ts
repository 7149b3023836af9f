import type { OpClass } from '../model/classes.js';
import type { MissingFigure } from '../model/figure.js';
import type { NecessaryOp } from './necessary-op.js';
import { boundOf, type Bound, type PeakFlops } from './utilization.js';
import { totalWork } from './work-totals.js';

interface RooflineTime extends Bound {
  /** Σ over operations of max(F/P, B/BW): the shortest time if operations run one after another. */
  one_by_one_s: number;
  /** The same, by class. */
  by_class: { class: OpClass; seconds: number }[];
}

/**
 * Minimum time of a stage on this hardware: max(Σ F/P, Σ B/BW) for the whole stage, and operation by operation. Missing
 * if a peak is unknown.
 */
export function rooflineTime(
  ops: readonly NecessaryOp[],
  peaks: PeakFlops,
  bandwidthBytesPerS: number | null,
): RooflineTime | MissingFigure {
  const bound = boundOf(totalWork(ops), peaks, bandwidthBytesPerS);
  if ('reason' in bound) return bound;
  const byClass = new Map<OpClass, number>();
  let one_by_one_s = 0;
  for (const op of ops) {
    const opBound = boundOf(totalWork([op]), peaks, bandwidthBytesPerS);
    if ('reason' in opBound) return opBound;
    one_by_one_s += opBound.roofline_s;
    byClass.set(op.class, (byClass.get(op.class) ?? 0) + opBound.roofline_s);
  }
  return {
    ...bound,
    one_by_one_s,
    by_class: [...byClass].map(([opClass, seconds]) => ({ class: opClass, seconds })),
  };
}
