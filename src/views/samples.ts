import { thinned } from '../model/thinned.js';
import type { Block } from './block.js';

/** A sampled series; `points` are [ms, value]. */
export interface SampledSeries {
  scope: string;
  metric: string;
  unit: string;
  points: readonly (readonly [number, number])[];
}

/** Rows of the table behind a chart, over all its series. */
const mostRows = 300;

/** The table behind a chart of samples: evenly spread ones where there are too many to read. */
export function samplesTable(
  series: readonly SampledSeries[],
  names: { scope: (scope: string) => string; metric: (metric: string) => string },
): Block {
  const each = Math.max(2, Math.floor(mostRows / Math.max(1, series.length)));
  return {
    t: 'table',
    level: 3,
    title: `At most ${each} samples per series, evenly spread`,
    columns: [
      { id: 'scope', head: 'scope' },
      { id: 'metric', head: 'metric' },
      { id: 'time_ms', head: 'time', numeric: true },
      { id: 'value', head: 'value', numeric: true },
    ],
    rows: series.flatMap(({ scope, metric, unit, points }) =>
      thinned(points, each).map(([time, value]) => ({
        cells: [names.scope(scope), names.metric(metric), { n: time, unit: 'ms' }, { n: value, unit }],
      })),
    ),
  };
}
