import type { BenchmarkMetric, BenchmarkPoint } from '../model/documents/results.js';
import type { Column } from './block.js';

export type Statistic = BenchmarkMetric['file'][number];

/** Statistics in display order, with their `drop` order. A tool's single value counts as its mean. */
export const statistics: readonly (Pick<Column, 'id' | 'head' | 'drop' | 'detail'> & {
  names: readonly string[];
})[] = [
  { id: 'mean', head: 'mean', names: ['mean', 'value'] },
  { id: 'sd', head: 'sd', names: ['sd', 'sd_population'], drop: 5 },
  { id: 'min', head: 'min', names: ['min'], drop: 4, detail: true },
  { id: 'p50', head: 'median', names: ['median', 'p50', 'median_step'] },
  { id: 'p90', head: 'p90', names: ['p90', 'p90_step'], drop: 6, detail: true },
  { id: 'p95', head: 'p95', names: ['p95', 'p95_step'], drop: 7, detail: true },
  { id: 'p99', head: 'p99', names: ['p99', 'p99_step'] },
  { id: 'max', head: 'max', names: ['max'], drop: 8 },
];

export const statisticIn = (list: readonly Statistic[], names: readonly string[]): Statistic | null =>
  names.map((name) => list.find(({ statistic }) => statistic === name)).find((found) => found) ?? null;

/** A metric with our definition: recomputed from the file's requests if it has them, else as the tool wrote it. */
export function ourStatistic({ metrics }: BenchmarkPoint, name: string, id: string): Statistic | null {
  const metric = metrics.find((candidate) => candidate.same_definition && candidate.name === name);
  if (!metric) return null;
  const { names } = statistics.find((group) => group.id === id)!;
  return statisticIn(metric.recomputed, names) ?? statisticIn(metric.file, names);
}
