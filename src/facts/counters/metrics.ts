import { figure, type Figure, missing } from '../../model/figure.js';

/** A metric over the launches of one kernel. */
export interface Mean {
  value: number;
  n: number;
  sd: number | null;
}

/** Means of a kernel's counters by metric name; metrics with only null values are left out. */
export type Metrics = ReadonlyMap<string, Mean>;

/** The first of these metrics that was collected, as a figure. */
export function metricFigure(metrics: Metrics, names: string | readonly string[], unit: string): Figure {
  const list = typeof names === 'string' ? [names] : names;
  for (const name of list) {
    const mean = metrics.get(name);
    if (mean) return meanFigure(mean, unit, name);
  }
  return missing('not_collected', `ncu did not collect ${list[0]}`);
}

function meanFigure({ value, n, sd }: Mean, unit: string, source: string): Figure {
  return figure(value, unit, source, { n, ...(sd === null ? {} : { sd }) });
}

/** Value of a metric; null when it was not collected. */
export function valueOf(metrics: Metrics, name: string): number | null {
  return metrics.get(name)?.value ?? null;
}

/** Applies f to the values of figures; the first missing figure is returned instead, with its reason. */
export function combine(
  parts: readonly Figure[],
  unit: string,
  source: string,
  f: (values: number[]) => number,
): Figure {
  const values: number[] = [];
  for (const part of parts) {
    if (part.value === null) return part;
    values.push(part.value);
  }
  return figure(f(values), unit, source);
}
