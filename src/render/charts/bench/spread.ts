import type { BenchResult } from '../../../model/documents/bench.js';
import { isTimedMetric, type SpreadRow, spreadRows, variantNames } from '../../../views/bench-series.js';
import { formatCount, formatMs, formatPercent, nbsp } from '../../../vocabulary/format.js';
import { axisName, axisStyle, base, grid, isNarrow, tip, type Chart } from '../chart.js';
import { lineKey, markOf } from '../lines.js';

const rowHeight = 24;

/** Part ttft_ms, tpot_ms or e2e_ms: every timed repeat as a share of its point's median, outliers as triangles. */
export const benchSpreadChart: Chart<BenchResult> = {
  height: (result, part) => 56 + rowHeight * (isTimedMetric(part) ? spreadRows(result, part).length : 0),
  key: (result) => lineKey(variantNames(result)),
  build: (input) => {
    if (!isTimedMetric(input.part)) return base(input);
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
