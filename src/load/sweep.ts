/** Figures of a completed load that a sweep needs. */
export interface SweepPoint {
  level: number;
  /** Output tokens (else chunks) per second. */
  output_rate: number;
  failed_share: number;
  /** Null without an SLO. */
  meets_slo: boolean | null;
  stopped: boolean;
}

const minimumGain = 0.05;
const maximumFailedShare = 0.05;
const bisections = 4;
const maxPoints = 16;

/**
 * The next load of a sweep to saturation, or null at its end. Loads double until doubling gives less than 5 % more,
 * more than 5 % of requests fail, or `max` is reached. With an SLO, they double until it is missed (or requests fail, or
 * `max` is reached), and the gap between the highest load that met it and the lowest that missed it is halved up to four
 * times, in whole numbers for users.
 */
export function nextLevel(
  points: readonly SweepPoint[],
  sweep: { from: number; max: number; integers: boolean; slo: boolean },
): number | null {
  const last = points.at(-1);
  if (!last) return sweep.from;
  if (last.stopped || points.length >= maxPoints) return null;
  const doubled = (level: number) => (level * 2 > sweep.max ? null : level * 2);
  if (!sweep.slo) return isSaturated(points) ? null : doubled(last.level);
  const met = points.filter((point) => point.meets_slo === true).map(({ level }) => level);
  const missed = points.filter((point) => point.meets_slo === false).map(({ level }) => level);
  const high = Math.min(...missed);
  if (missed.length === 0) return last.failed_share > maximumFailedShare ? null : doubled(last.level);
  const low = Math.max(0, ...met.filter((level) => level < high));
  const halvings = points.length - 1 - points.findIndex((point) => point.meets_slo === false);
  if (halvings >= bisections) return null;
  const middle = sweep.integers ? Math.floor((low + high) / 2) : Number(((low + high) / 2).toPrecision(3));
  return middle <= low || middle >= high || (sweep.integers && middle < 1) ? null : middle;
}

function isSaturated(points: readonly SweepPoint[]): boolean {
  const last = points.at(-1)!;
  if (last.failed_share > maximumFailedShare) return true;
  const before = points.at(-2);
  return before !== undefined && last.output_rate < before.output_rate * (1 + minimumGain);
}
