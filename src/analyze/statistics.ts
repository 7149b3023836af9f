import { figure, missing, type Figure } from '../model/figure.js';

/** A repeat's value and the process launch it ran in. */
export interface Repeat {
  launch: number;
  value: number;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Sample standard deviation (n − 1). */
export function standardDeviation(values: readonly number[]): number {
  const m = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - m) ** 2, 0) / (values.length - 1));
}

/**
 * Mean over repeats with a 95 % confidence interval. Repeats of one process share its memory layout and its moment, so
 * they are not independent: the launch is the unit, and the interval is Student's t over the launches' means. With one
 * launch it is over the repeats, and says only how steady that process was.
 */
export function meanOverLaunches(repeats: readonly Repeat[], unit: string, source: string): Figure {
  if (repeats.length === 0) return missing('no_repeats', 'no timed repeat was completed');
  const values = repeats.map((repeat) => repeat.value);
  const launches = [...new Set(repeats.map((repeat) => repeat.launch))];
  const units =
    launches.length > 1
      ? launches.map((launch) => mean(repeats.filter((r) => r.launch === launch).map((r) => r.value)))
      : values;
  const center = mean(values);
  if (values.length < 2) return figure(center, unit, source, { n: 1 });
  const halfWidth = (studentT975(units.length - 1) * standardDeviation(units)) / Math.sqrt(units.length);
  return figure(center, unit, source, {
    n: values.length,
    sd: standardDeviation(values),
    ci95: [center - halfWidth, center + halfWidth],
  });
}

/** Two-sided 95 % quantile of Student's t: exact table to 10 degrees of freedom, then Cornish-Fisher (A&S 26.7.5). */
export function studentT975(degreesOfFreedom: number): number {
  const table = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281];
  const exact = table[degreesOfFreedom - 1];
  if (exact !== undefined) return exact;
  const z = 1.959964;
  const v = degreesOfFreedom;
  return (
    z +
    (z ** 3 + z) / (4 * v) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * v ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * v ** 3)
  );
}

/** Linear interpolation between order statistics (type 7, as numpy and DuckDB's quantile_cont). `sorted` ascending. */
export function percentile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  const high = Math.ceil(at);
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (at - low);
}

/** What every distribution tells beside its mean; percentiles are linear (type 7). At least one value. */
export function orderStatistics(values: readonly number[]) {
  const sorted = [...values].sort((x, y) => x - y);
  return {
    min: sorted[0]!,
    p50: percentile(sorted, 0.5),
    p90: percentile(sorted, 0.9),
    p95: percentile(sorted, 0.95),
    p99: percentile(sorted, 0.99),
    max: sorted.at(-1)!,
  };
}

/** Tukey's fences: outside 1.5 interquartile ranges of the quartiles. Outliers are marked, never removed. */
export function outlierTest(values: readonly number[]): (value: number) => boolean {
  if (values.length < 4) return () => false;
  const sorted = [...values].sort((x, y) => x - y);
  const q1 = percentile(sorted, 0.25);
  const q3 = percentile(sorted, 0.75);
  const reach = 1.5 * (q3 - q1);
  return (value) => value < q1 - reach || value > q3 + reach;
}
