import type { BenchPointResult, BenchResult, BenchSpread } from '../../../model/documents/bench.js';
import { formatCount, formatMs, formatPercent, nbsp } from '../../format.js';
import { axisName, axisStyle, base, grid, isNarrow, tip, type Chart } from '../chart.js';
import { markOf } from '../lines.js';
import { lengthWords } from './batch.js';

export const spreadMetrics = { ttft_ms: 'TTFT', tpot_ms: 'TPOT', e2e_ms: 'end to end' } as const;
export type SpreadMetric = keyof typeof spreadMetrics;

/** Where a quarter, a half and three quarters of the values lie, and Tukey's fences around them. */
export interface Box {
  q1: number;
  median: number;
  q3: number;
  low: number;
  high: number;
}

/** Linear between order statistics (type 7). */
export function boxOf(values: readonly number[]): Box | null {
  if (values.length < 4) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => {
    const place = (sorted.length - 1) * share;
    const low = sorted[Math.floor(place)] ?? 0;
    return low + ((sorted[Math.ceil(place)] ?? low) - low) * (place % 1);
  };
  const [q1, q3] = [at(0.25), at(0.75)];
  const reach = 1.5 * (q3 - q1);
  return { q1, median: at(0.5), q3, low: q1 - reach, high: q3 + reach };
}

export interface SpreadRow {
  name: string;
  variant: number;
  spread: BenchSpread;
  repeats: { launch: number; value: number; outlier: boolean }[];
  box: Box | null;
}

function rowOf(
  point: BenchPointResult,
  variant: number,
  label: string | null,
  metric: SpreadMetric,
): SpreadRow[] {
  const spread = point.latency[metric];
  if ('value' in spread) return [];
  const timed = (point.repeats ?? []).flatMap((repeat) => {
    const value = repeat[metric];
    return value === null ? [] : [{ launch: repeat.launch, value }];
  });
  const box = boxOf(timed.map(({ value }) => value));
  const repeats = timed.map((one) => ({
    ...one,
    outlier: box !== null && (one.value < box.low || one.value > box.high),
  }));
  const shape = `batch ${formatCount(point.batch_size)}, ${lengthWords(point)}`;
  return [{ name: label === null ? shape : `${shape} · ${label}`, variant, spread, repeats, box }];
}

/** A row a point and variant that has this distribution. */
export function spreadRows({ variants }: BenchResult, metric: SpreadMetric): SpreadRow[] {
  const points = variants[0]?.points ?? [];
  const names = [...new Set([...points, ...variants.flatMap((one) => one.points)].map(({ point }) => point))];
  return names.flatMap((name) =>
    variants.flatMap(({ label, points: own }, index) => {
      const point = own.find((one) => one.point === name);
      return point ? rowOf(point, index, variants.length > 1 ? label : null, metric) : [];
    }),
  );
}

const isMetric = (part: string): part is SpreadMetric => part in spreadMetrics;
const rowHeight = 24;

/** Part ttft_ms, tpot_ms or e2e_ms: every timed repeat as a share of its point's median, outliers as triangles. */
export const benchSpreadChart: Chart<BenchResult> = {
  height: (result, part) => 56 + rowHeight * (isMetric(part) ? spreadRows(result, part).length : 0),
  build: (input) => {
    if (!isMetric(input.part)) return base(input);
    const { theme } = input;
    const rows = spreadRows(input.result, input.part);
    const share = (row: SpreadRow, value: number): number => value / row.spread.p50 - 1;
    const dots = rows.flatMap((row, at) => row.repeats.map((repeat) => ({ ...repeat, row, at })));
    const ends = rows.flatMap((row) => [share(row, row.spread.min), share(row, row.spread.max)]);
    const reach = Math.max(0.01, ...ends.map(Math.abs)) * 1.08;
    const narrow = isNarrow(input.width);
    return {
      ...base(input),
      grid: grid({ right: 20 }),
      xAxis: {
        type: 'value',
        min: Math.max(-reach, Math.min(...ends, -0.01) * 1.3),
        max: reach,
        ...axisStyle(input),
        axisLabel: {
          color: theme.muted,
          hideOverlap: true,
          showMinLabel: false,
          showMaxLabel: false,
          formatter: (value: number) => `${value > 0 ? '+' : ''}${formatPercent(value)}`,
        },
        ...axisName(narrow ? 'against the median' : "against the point's own median", 28),
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: rows.map(({ name }) => name),
        ...axisStyle(input),
        axisTick: { show: false },
        axisLabel: {
          color: theme.ink,
          interval: 0,
          fontSize: narrow ? 10 : 12,
          ...(narrow ? { width: 150, overflow: 'break' as const, lineHeight: 11 } : {}),
        },
      },
      series: [
        {
          type: 'custom',
          name: 'spread',
          z: 2,
          encode: { x: [1, 2], y: 0 },
          data: rows.map((row, at) => [at, share(row, row.spread.min), share(row, row.spread.max)]),
          tooltip: {
            formatter: (params) => {
              const row = rows[(params as { dataIndex: number }).dataIndex];
              if (!row) return '';
              const { spread } = row;
              return tip(
                row.name,
                `median ${formatMs(spread.p50)}, mean ${formatMs(spread.mean)}`,
                `${formatMs(spread.min)} to ${formatMs(spread.max)}, p95 ${formatMs(spread.p95)}`,
                `n${nbsp}=${nbsp}${formatCount(spread.n)} in ${formatCount(spread.launches)} launches`,
              );
            },
          },
          renderItem: (params, api) => {
            const row = rows[params.dataIndex];
            if (!row) return null;
            const { color } = markOf(row.variant);
            const x = (value: number): number => api.coord([share(row, value), params.dataIndex])[0] ?? 0;
            const y = api.coord([0, params.dataIndex])[1] ?? 0;
            const line = (x1: number, y1: number, x2: number, y2: number, width: number, stroke: string) => ({
              type: 'line' as const,
              shape: { x1, y1, x2, y2 },
              style: { stroke, lineWidth: width },
            });
            const [from, to] = row.box ? [row.box.q1, row.box.q3] : [row.spread.p50, row.spread.p90];
            return {
              type: 'group',
              children: [
                line(x(row.spread.min), y, x(row.spread.max), y, 1, color),
                {
                  type: 'rect' as const,
                  shape: { x: x(from), y: y - 7, width: Math.max(1, x(to) - x(from)), height: 14 },
                  style: { fill: color, opacity: 0.3, stroke: color, lineWidth: 1 },
                },
                line(x(row.spread.p50), y - 8, x(row.spread.p50), y + 8, 2, theme.ink),
              ],
            };
          },
        },
        {
          type: 'scatter',
          name: 'repeats',
          z: 3,
          data: dots.map(({ row, at, value, outlier }) => ({
            value: [share(row, value), at],
            symbol: outlier ? 'triangle' : 'circle',
            symbolSize: outlier ? 10 : 4,
            itemStyle: outlier
              ? { color: theme.surface, borderColor: theme.ink, borderWidth: 1.5 }
              : { color: theme.ink, opacity: 0.55 },
          })),
          tooltip: {
            formatter: (params) => {
              const dot = dots[(params as { dataIndex: number }).dataIndex];
              if (!dot) return '';
              return tip(
                dot.row.name,
                `${formatMs(dot.value)}, launch ${dot.launch + 1}`,
                ...(dot.outlier ? ['outlier: counted, marked, not removed'] : []),
              );
            },
          },
        },
      ],
    };
  },
};
