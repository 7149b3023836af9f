import { evenlySpaced } from '../model/evenly-spaced.js';
import { isCore, scopeColor } from '../vocabulary/colors.js';
import { metricLabel, scopeLabel } from '../vocabulary/sampled-metrics.js';
import type { Block } from './block.js';
import type { LinesChart, Panel } from './chart.js';

/** A sampled series; `points` are [ms, value]. */
export interface SampledSeries {
  scope: string;
  metric: string;
  unit: string;
  points: readonly (readonly [number, number])[];
}

/** Maximum rows of the table behind a chart, over all its series. */
const maxRows = 300;

/** The table behind a chart of samples: evenly spaced ones if there are too many. */
export function samplesTable(
  series: readonly SampledSeries[],
  names: { scope: (scope: string) => string; metric: (metric: string) => string },
): Block {
  const samplesPerSeries = Math.max(2, Math.floor(maxRows / Math.max(1, series.length)));
  return {
    type: 'table',
    level: 3,
    title: `At most ${samplesPerSeries} samples per series, evenly spread`,
    columns: [
      { id: 'scope', head: 'scope' },
      { id: 'metric', head: 'metric' },
      { id: 'time_ms', head: 'time', numeric: true },
      { id: 'value', head: 'value', numeric: true },
    ],
    rows: series.flatMap(({ scope, metric, unit, points }) =>
      evenlySpaced(points, samplesPerSeries).map(([time, value]) => ({
        cells: [names.scope(scope), names.metric(metric), { n: time, unit: 'ms' }, { n: value, unit }],
      })),
    ),
  };
}

/** The metrics most useful to judge a doubtful run first; others follow. */
const readingOrder = [
  'cores_busy',
  'utilization_percent',
  'power_w',
  'steal_percent',
  'rss_bytes',
  'clock_mhz',
];

const rank = (metric: string): number => (readingOrder.indexOf(metric) + 1 || readingOrder.length + 1) - 1;

/** Whether a percentage cannot exceed 100; that of a multi-threaded process can. */
const isShare = (series: readonly SampledSeries[]): boolean =>
  series.every(
    ({ unit, scope, points }) => unit === '%' && scope !== 'process' && points.every(([, v]) => v <= 100),
  );

const panelOf = (metric: string, series: readonly SampledSeries[]): Panel => ({
  title: metricLabel(metric),
  // The metric's name contains the unit.
  unit: metric === 'cores_busy' ? '' : (series[0]?.unit ?? ''),
  ...(isShare(series) && { max: 100 }),
  series: series.map(({ scope, points }) => ({
    name: scopeLabel(scope),
    color: scopeColor(scope),
    ...(isCore(scope) && { style: 'pale' as const }),
    // Rounded to 1 ms and four decimals, which a chart cannot resolve: the page also contains the document.
    points: points.map(([ms, value]) => [Math.round(ms) / 1e3, Math.round(value * 1e4) / 1e4] as const),
  })),
});

/** One panel per metric over the time of the session, with the table behind it. */
export function samplesBlock(
  series: readonly SampledSeries[],
  label: string,
  shades: LinesChart['shades'] = [],
): Block {
  const metrics = [...new Set(series.map(({ metric }) => metric))].toSorted((a, b) => rank(a) - rank(b));
  return {
    type: 'chart',
    level: 3,
    label,
    chart: {
      form: 'lines',
      x: { name: 'since session start', unit: 's' },
      panels: metrics.map((metric) =>
        panelOf(
          metric,
          series.filter((sampledSeries) => sampledSeries.metric === metric),
        ),
      ),
      shades,
    },
    behind: samplesTable(series, { scope: scopeLabel, metric: metricLabel }),
  };
}
