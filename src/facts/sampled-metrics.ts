import { metricUnit } from '../vocabulary/sampled-metrics.js';

/** Constants, counters and bit masks, which have no meaningful mean. */
export const notSeries: readonly string[] = [
  'throttle_bits',
  'energy_j',
  'memory_total_bytes',
  'max_sm_clock_mhz',
  'max_memory_clock_mhz',
];

interface Series {
  scope: string;
  metric: string;
  unit: string;
  points: [number, number][];
}

/** One series per metric of a scope, from rows in time order. */
export function seriesOf(
  rows: readonly { scope: string; metric: string; t: number; value: number }[],
): Series[] {
  const seriesByName = new Map<string, Series>();
  for (const { scope, metric, t, value } of rows) {
    const key = `${scope} ${metric}`;
    const series = seriesByName.get(key) ?? { scope, metric, unit: metricUnit(metric), points: [] };
    series.points.push([t, value]);
    seriesByName.set(key, series);
  }
  return [...seriesByName.values()];
}
