import { type Figure, figure } from './figure.js';
import { studentT95 } from './student-t.js';

/** NaN without values. */
export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}

/** Sample standard deviation (n − 1); NaN for one value. */
export function standardDeviation(values: ArrayLike<number>): number {
  const center = mean(values);
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i]! - center) ** 2;
  return Math.sqrt(squares / (values.length - 1));
}

/** Linear interpolation between order statistics (type 7, as in numpy and DuckDB's quantile_cont). `sorted` is ascending and not empty. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const position = (sorted.length - 1) * share;
  const low = sorted[Math.floor(position)]!;
  return low + (sorted[Math.ceil(position)]! - low) * (position - Math.floor(position));
}

/** Median of values in any order; NaN without values. */
export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((x, y) => x - y),
    0.5,
  );
}

/** The lower of the two middle values for an even number, so that the larger of two values is above it; 0 without values. */
export function lowerMedian(values: readonly number[]): number {
  return values.toSorted((x, y) => x - y)[(values.length - 1) >> 1] ?? 0;
}

/**
 * 95 % confidence interval of the mean of `n` independent non-negative values such as times, rates, bytes and counts (Student's t, cut at
 * 0); `n` at least 2. Differences have their own tests (facts/difference).
 */
export function interval95(center: number, sd: number, n: number): [low: number, high: number] {
  const half = (studentT95(n - 1) * sd) / Math.sqrt(n);
  return [Math.min(center, Math.max(0, center - half)), center + half];
}

/** A mean with its spread and interval if there are at least two values. */
export function meanFigure(
  { mean: center, sd, n }: { mean: number; sd: number | null; n: number },
  unit: string,
  source: string,
): Figure {
  if (n < 2 || sd === null) return figure(center, unit, source, { n });
  return figure(center, unit, source, { n, sd, ci95: interval95(center, sd, n) });
}
