import type { Figure } from '../../model/figure.js';
import { halfInterval } from '../../model/half-interval.js';

/**
 * Half of the 95 % interval relative to the value; from sd and n if the figure has no interval; null without either.
 */
export function halfWidth(figure: Figure): number | null {
  if (figure.value === null || figure.value <= 0) return null;
  const half = halfInterval(figure);
  if (half !== null) return half / figure.value;
  const { sd, n } = figure;
  return sd === undefined || !n || n < 2 ? null : (1.96 * sd) / Math.sqrt(n) / figure.value;
}

/**
 * Half of the 95 % interval of the difference of two independent figures, in their unit; null unless both have a
 * spread.
 */
export function noiseOfDifference(from: Figure, to: Figure): number | null {
  const [fromHalf, toHalf] = [halfWidth(from), halfWidth(to)];
  return fromHalf === null || toHalf === null ? null : Math.hypot(fromHalf * from.value!, toHalf * to.value!);
}

/** Whether the difference of two figures exceeds its uncertainty; null if that is not known. */
export function isSignificant(from: Figure, to: Figure): boolean | null {
  const noise = noiseOfDifference(from, to);
  return noise === null || from.value === null || to.value === null
    ? null
    : Math.abs(to.value - from.value) > noise;
}
