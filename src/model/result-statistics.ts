import type { BenchmarkMetric, BenchmarkPoint } from './documents/results.js';

export type Statistic = BenchmarkMetric['file'][number];

/** Names of one statistic in the files of tools, the interpolated one first. A tool's single value counts as its mean. */
export const statisticNames = {
  mean: ['mean', 'value'],
  sd: ['sd', 'sd_population'],
  min: ['min'],
  p50: ['median', 'p50', 'median_step'],
  p90: ['p90', 'p90_step'],
  p95: ['p95', 'p95_step'],
  p99: ['p99', 'p99_step'],
  max: ['max'],
} as const satisfies Record<string, readonly string[]>;
export type StatisticId = keyof typeof statisticNames;

export const statisticIn = (list: readonly Statistic[], id: StatisticId): Statistic | null =>
  statisticNames[id].map((name) => list.find(({ statistic }) => statistic === name)).find((found) => found) ??
  null;

/** A metric with our definition: recomputed from the file's requests if it has them, else as the tool wrote it. */
export function ourStatistic({ metrics }: BenchmarkPoint, name: string, id: StatisticId): Statistic | null {
  const metric = metrics.find((candidate) => candidate.same_definition && candidate.name === name);
  return metric ? (statisticIn(metric.recomputed, id) ?? statisticIn(metric.file, id)) : null;
}

/** Requests counted in the file, else reported by the tool; null if unknown. Some tools count only completed requests. */
export function requestCounts({ requests, metrics }: BenchmarkPoint): {
  ok: number;
  failed: number | null;
} | null {
  if (requests !== null) return requests;
  const reported = (name: string): number | null => {
    const metric = metrics.find((candidate) => candidate.same_definition && candidate.name === name);
    return (metric && [...metric.file, ...metric.recomputed][0]?.value) ?? null;
  };
  const ok = reported('completed');
  return ok === null ? null : { ok, failed: reported('failed') };
}
