import type { ServingPoint, ServingResult, Spread } from '../model/documents/serving.js';
import { latencyLabels, type LatencyId, loadLabel } from '../vocabulary/loads.js';
import type { Block, Column, Section, Text } from './block.js';
import {
  knownLatencies,
  knownRates,
  latencySectionId,
  latencyChart,
  rateChart,
  type RatePart,
  sloBound,
} from './serving-series.js';

const load: Column = { id: 'load', head: 'load' };

interface StatisticColumn extends Column {
  text: (spread: Spread) => Text;
}

const statisticColumn = (name: 'mean' | 'sd' | 'p50' | 'p90' | 'p95' | 'p99' | 'max', drop?: number) => ({
  id: `${name}_ms`,
  head: name,
  numeric: true,
  ...(drop === undefined ? {} : { drop }),
  text: ({ [name]: n }: Spread): Text =>
    n === null ? { missing: 'fewer than two values' } : { n, unit: 'ms' },
});

const statistics: readonly StatisticColumn[] = [
  { id: 'n', head: 'n', numeric: true, drop: 3, text: ({ n }) => ({ count: n }) },
  statisticColumn('mean'),
  {
    id: 'ci95_ms',
    head: '95 % interval',
    numeric: true,
    drop: 2,
    text: ({ ci95 }) =>
      ci95 === null
        ? { missing: 'fewer than 20 values' }
        : [{ n: ci95[0], unit: 'ms' }, ' to ', { n: ci95[1], unit: 'ms' }],
  },
  statisticColumn('sd', 4),
  statisticColumn('p50'),
  statisticColumn('p90', 1),
  statisticColumn('p95', 0),
  statisticColumn('p99'),
  statisticColumn('max', 5),
];

/** Every statistic of each latency, one row per load. */
export const latencySection = (data: ServingResult, points: readonly ServingPoint[]): Section => ({
  id: latencySectionId,
  title: 'Latency by load',
  level: 2,
  blocks: knownLatencies(data).map((metric) => ({
    type: 'chart',
    title: latencyLabels[metric],
    label: `Percentiles of ${latencyLabels[metric]} against the load`,
    chart: latencyChart(data, metric),
    half: true,
    behind: latencyTable(data, points, metric),
  })),
});

function latencyTable(data: ServingResult, points: readonly ServingPoint[], metric: LatencyId): Block {
  const bound = sloBound(data, metric);
  const title = latencyLabels[metric];
  return {
    type: 'table',
    title: bound === null ? title : [title, '; SLO ', { n: bound, unit: 'ms' }],
    reasons: true,
    columns: [load, ...statistics],
    rows: points.map(({ load: pointLoad, latency: { [metric]: spread } }) => ({
      cells: [
        loadLabel(pointLoad),
        ...statistics.map((column) =>
          'value' in spread ? { missing: spread.reason.text } : column.text(spread),
        ),
      ],
    })),
  };
}

const rateTitles: Readonly<Record<RatePart, string>> = {
  tokens: 'Tokens per second',
  requests: 'Requests per second',
};

export const throughputSection = (data: ServingResult, points: readonly ServingPoint[]): Section => ({
  id: 'throughput',
  title: 'Throughput by load',
  level: 2,
  blocks: (['tokens', 'requests'] as const)
    .map((part) => ({ part, rates: knownRates(data, part) }))
    .filter(({ rates }) => rates.length > 0)
    .map(({ part, rates }) => ({
      type: 'chart',
      title: rateTitles[part],
      label: `${rateTitles[part]} against the load`,
      chart: rateChart(data, part),
      half: true,
      behind: {
        type: 'table',
        title: rateTitles[part],
        reasons: true,
        columns: [load, ...rates.map(({ id, name }): Column => ({ id, head: name, numeric: true }))],
        rows: points.map((point) => ({
          cells: [
            loadLabel(point.load),
            ...rates.map(({ figure }) => ({ figure: figure(point), spread: true })),
          ],
        })),
      },
    })),
});
