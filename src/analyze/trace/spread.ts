import type { Spread } from '../../model/documents/trace.js';

/** SQL columns of a Spread over `expression`; sd is the sample's, null for one value. Medians are exact (type 7). */
export function spreadColumns(expression: string, prefix = ''): string {
  return `count(${expression}) AS ${prefix}count, sum(${expression})::DOUBLE AS ${prefix}total_ns,
    median(${expression}) AS ${prefix}median_ns,
    min(${expression}) AS ${prefix}min_ns, max(${expression}) AS ${prefix}max_ns,
    stddev_samp(${expression}) AS ${prefix}sd_ns`;
}

/** The Spread in a row's columns, in its own key order and without the others; null when nothing was counted. */
export function spreadOf(row: object, prefix = ''): Spread | null {
  const values = row as Record<string, number | null>;
  const of = (key: string) => values[`${prefix}${key}`];
  const count = of('count') ?? 0;
  if (count === 0) return null;
  return {
    count,
    total_ns: of('total_ns') ?? 0,
    mean_ns: (of('total_ns') ?? 0) / count,
    median_ns: of('median_ns') ?? 0,
    min_ns: of('min_ns') ?? 0,
    max_ns: of('max_ns') ?? 0,
    sd_ns: of('sd_ns') ?? null,
  };
}
