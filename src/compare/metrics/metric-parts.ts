import type { SampledMetric } from '../../model/documents/baseline.js';
import { mean } from '../../model/statistics.js';

/** One session's values of a metric. */
export interface MetricPart {
  point: string | null;
  name: string;
  unit: string;
  better: 'lower' | 'higher';
  value: number;
  /** Means of its process launches, or values of separate runs; empty with one launch. */
  launches: number[];
  /** Repeats inside one process. */
  repeats: number[];
  interval: SampledMetric['interval'];
  source: string;
}

export const idOf = ({ point, name }: Pick<MetricPart, 'point' | 'name'>): string =>
  point === null ? name : `${point} · ${name}`;

/**
 * Pools several sessions into one metric. Every session counts as at least one launch: three sessions with one process
 * each show more than any number of repeats inside one process.
 */
export function pooled(parts: readonly MetricPart[]): SampledMetric {
  const [first] = parts;
  const { point, name, unit, better, source, interval } = first!;
  const identity = { id: idOf(first!), point, name, unit, better, source };
  const launches = parts.flatMap((part) => (part.launches.length > 0 ? part.launches : [part.value]));
  if (launches.length > 1) {
    return { ...identity, value: mean(launches), basis: 'launches', values: launches, interval: null };
  }
  const { value, repeats } = first!;
  if (repeats.length > 1) return { ...identity, value, basis: 'repeats', values: repeats, interval: null };
  if (interval) return { ...identity, value, basis: 'interval', values: [], interval };
  return { ...identity, value, basis: 'none', values: [], interval: null };
}

/** Repeats with their launches. */
export function partOfRepeats(
  metric: Pick<MetricPart, 'point' | 'name' | 'unit' | 'better' | 'source'>,
  repeats: readonly { launch: string; value: number }[],
): MetricPart[] {
  if (repeats.length === 0) return [];
  const values = repeats.map(({ value }) => value);
  const launches = [...new Set(repeats.map(({ launch }) => launch))];
  const means = launches.map((name) =>
    mean(repeats.filter(({ launch }) => launch === name).map(({ value }) => value)),
  );
  const hasLaunches = means.length > 1;
  return [
    {
      ...metric,
      value: mean(hasLaunches ? means : values),
      launches: hasLaunches ? means : [],
      repeats: hasLaunches ? [] : values,
      interval: null,
    },
  ];
}
