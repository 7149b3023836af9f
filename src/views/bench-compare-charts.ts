import type { ComparedMetric } from '../model/documents/bench-compare.js';
import { pointLabel } from '../vocabulary/bench.js';
import { lineMark } from '../vocabulary/colors.js';
import { comparedMetricLabel } from '../vocabulary/compared-metrics.js';
import type { Block, Text } from './block.js';
import type { Chart } from './chart.js';

/** Metrics drawn over several points; the tables have all. */
const maxMetrics = 6;

const sides = [
  { name: 'base', valueOf: ({ base }: ComparedMetric) => base },
  { name: 'new', valueOf: ({ now }: ComparedMetric) => now },
];

/** Metrics of both sides: over several points as lines, of one point relative to the base. Only pages draw them. */
export function compareCharts(comparisons: readonly ComparedMetric[]): Block[] {
  const onBoth = comparisons.filter(({ base, now }) => base !== null && now !== null);
  const points = [...new Set(onBoth.map(({ point }) => point))];
  if (points.length > 1) return overPoints(onBoth, points);
  const units = [...new Set(onBoth.map(({ unit }) => unit))];
  return units.map((unit) => relativeToBase(onBoth.filter((metric) => metric.unit === unit)));
}

/** A chart per metric that several points have; medians, tails and maxima are in the tables. */
function overPoints(metrics: readonly ComparedMetric[], points: readonly (string | null)[]): Block[] {
  const names = [...new Set(metrics.map(({ name }) => name))].filter(
    (name) =>
      !/\.(median|p99|max)$/.test(name) && metrics.filter((metric) => metric.name === name).length > 1,
  );
  return names.slice(0, maxMetrics).map((name) => {
    const metricsOfName = metrics.filter((metric) => metric.name === name);
    const title = comparedMetricLabel(name);
    const at = points.map((point) => metricsOfName.find((metric) => metric.point === point));
    const labels = points.map((point) => (point === null ? '' : pointLabel(point)));
    return chartBlock(title, `${title} of both sides at each point`, ['point', labels, at], {
      form: 'lines',
      x: { name: '', categories: labels },
      panels: [
        {
          unit: metricsOfName[0]!.unit,
          series: sides.map((side, index) => ({
            name: side.name,
            ...lineMark(index),
            points: at.map((metric, x) => [x, metric ? side.valueOf(metric) : null] as const),
          })),
        },
      ],
    });
  });
}

function relativeToBase(metrics: readonly ComparedMetric[]): Block {
  const [{ unit, better }] = metrics as [ComparedMetric];
  const labels = metrics.map(({ name }) => comparedMetricLabel(name));
  const title = `Metrics in ${unit === '' ? 'numbers' : unit}, ${better} is better`;
  return chartBlock(title, `${title}, relative to the base`, ['metric', labels, metrics], {
    form: 'bars',
    kind: 'multiples',
    unit,
    rows: labels,
    series: sides.map(({ name, valueOf }, index) => ({
      name,
      color: lineMark(index).color,
      values: metrics.map(valueOf),
    })),
  });
}

function chartBlock(
  title: string,
  label: string,
  [head, labels, metrics]: [string, readonly string[], readonly (ComparedMetric | undefined)[]],
  chart: Chart,
): Block {
  const missing = { missing: 'not on both sides' };
  return {
    type: 'chart',
    level: 3,
    half: chart.form === 'lines',
    title,
    label,
    chart,
    behind: {
      type: 'table',
      title,
      columns: [{ id: 'name', head }, ...sides.map(({ name }) => ({ id: name, head: name, numeric: true }))],
      rows: metrics.map((metric, index) => ({
        cells: [
          labels[index]!,
          ...sides.map(({ valueOf }): Text => {
            const n = metric === undefined ? null : valueOf(metric);
            return n === null ? missing : { n, unit: metric!.unit };
          }),
        ],
      })),
    },
  };
}
