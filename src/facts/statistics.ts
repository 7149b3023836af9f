import { figure, missing, type Figure } from '../model/figure.js';
import { interval95, mean, percentile, standardDeviation } from '../model/statistics.js';

/** A repeat's value and the process launch it ran in. */
export interface Repeat {
  launch: number;
  value: number;
}

/**
 * Mean over repeats with a 95 % confidence interval. Repeats of one process share its memory layout and time of run, so
 * they are not independent. The unit is the launch: the interval is Student's t over the launches' means. With one
 * launch it is over repeats, and covers only the variation within that process.
 */
export function meanOverLaunches(repeats: readonly Repeat[], unit: string, source: string): Figure {
  if (repeats.length === 0) return missing('no_repeats', 'no timed repeat was completed');
  const values = repeats.map((repeat) => repeat.value);
  const launches = [...new Set(repeats.map((repeat) => repeat.launch))];
  const independent =
    launches.length > 1
      ? launches.map((launch) => mean(repeats.filter((r) => r.launch === launch).map((r) => r.value)))
      : values;
  const center = mean(values);
  if (values.length < 2) return figure(center, unit, source, { n: 1 });
  return figure(center, unit, source, {
    n: values.length,
    sd: standardDeviation(values),
    ci95: interval95(center, standardDeviation(independent), independent.length),
    ...(launches.length > 1 && { ci95_over: { unit: 'launches', n: launches.length } }),
  });
}

/** Mean of each group of values with the same key. */
export function meansBy<T>(
  rows: readonly T[],
  keyOf: (row: T) => unknown,
  repeatOf: (row: T) => Repeat,
): Repeat[] {
  const groups = new Map<unknown, Repeat[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(repeatOf(row));
    else groups.set(keyOf(row), [repeatOf(row)]);
  }
  return [...groups.values()].map((group) => ({
    launch: group[0]!.launch,
    value: mean(group.map(({ value }) => value)),
  }));
}

/** Order statistics of a distribution, without its mean. Percentiles are linear (type 7). Needs at least one value. */
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

/** Tukey's fences, 1.5 interquartile ranges outside the quartiles. Outliers are marked, never removed. */
export function outlierTest(values: readonly number[]): (value: number) => boolean {
  if (values.length < 4) return () => false;
  const sorted = [...values].sort((x, y) => x - y);
  const q1 = percentile(sorted, 0.25);
  const q3 = percentile(sorted, 0.75);
  const reach = 1.5 * (q3 - q1);
  return (value) => value < q1 - reach || value > q3 + reach;
}
