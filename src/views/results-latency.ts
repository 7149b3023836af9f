import type { BenchmarkPoint } from '../model/documents/results.js';
import { ourStatistic } from '../model/result-statistics.js';
import { lineMark } from '../vocabulary/colors.js';
import { latencyLabels } from '../vocabulary/loads.js';
import type { Block, Section, Text } from './block.js';
import type { Point, Series } from './chart.js';
import { latencySectionId } from './serving-series.js';
import { tableOf } from './table-of.js';

interface LabeledPoint {
  label: string;
  point: BenchmarkPoint;
}

const latencies = ['ttft', 'tpot', 'itl', 'e2e'] as const;
const drawnStatistics = [
  { id: 'p50', name: 'median' },
  { id: 'p99', name: 'p99' },
] as const;

/** Charts of median and p99 over the load, for each latency with our definition; null if fewer than two loads have one. */
export function resultLatencySection(points: readonly LabeledPoint[]): Section | null {
  const loads = byServedRate(points);
  const blocks = latencies.flatMap((metric): Block[] => {
    const series = drawnStatistics.map(({ id, name }, index): Series => ({
      name,
      ...lineMark(index),
      points: loads.map(({ point }, position): Point => [
        position,
        ourStatistic(point, metric, id)?.value ?? null,
      ]),
    }));
    const drawnSeries = series.filter((line) => line.points.filter(([, y]) => y !== null).length > 1);
    if (drawnSeries.length === 0) return [];
    const [onlySeries] = drawnSeries.length === 1 ? drawnSeries : [];
    const title = onlySeries ? `${latencyLabels[metric]} ${onlySeries.name}` : latencyLabels[metric];
    return [
      {
        type: 'chart',
        title,
        label: `${title} against the load`,
        half: true,
        chart: {
          form: 'lines',
          x: { name: 'load', categories: loads.map(({ label }) => label) },
          panels: [{ unit: 'ms', series: drawnSeries }],
        },
        behind: tableOf(
          latencyLabels[metric],
          [
            { id: 'load', head: 'load', wraps: true, cell: ({ label }) => label },
            ...drawnStatistics.map(({ id, name }) => ({
              id: `${id}_ms`,
              head: name,
              numeric: true,
              cell: ({ point }: LabeledPoint): Text => {
                const statistic = ourStatistic(point, metric, id);
                return statistic ? { n: statistic.value, unit: 'ms' } : { missing: 'not in the file' };
              },
            })),
          ],
          loads,
        ),
      },
    ];
  });
  return blocks.length === 0 ? null : { id: latencySectionId, title: 'Latency by load', level: 3, blocks };
}

/** Ordered by served rate if every load has one: tools write a sweep in run order. */
function byServedRate(points: readonly LabeledPoint[]): readonly LabeledPoint[] {
  const rated = points.map((point) => ({
    point,
    rate: ourStatistic(point.point, 'request_throughput', 'mean'),
  }));
  if (rated.some(({ rate }) => rate === null)) return points;
  return rated.toSorted((a, b) => a.rate!.value - b.rate!.value).map(({ point }) => point);
}
