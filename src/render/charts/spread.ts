import type { EChartsOption } from 'echarts';
import { formatPercent, formatQuantity, formatSigned } from '../../vocabulary/format.js';
import type { SpreadChart } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { plainText } from '../value.js';
import { base, grid, isNarrow, type Frame, rowAxis, tipOf, valueAxis } from './chart.js';

export const spreadHeight = ({ rows }: SpreadChart): number => 56 + 24 * rows.length;

/** Each row relative to its median: the range as a line, the middle half as a box, every value as a dot. */
export function spreadOption({ rows, unit }: SpreadChart, frame: Frame): EChartsOption {
  const { theme } = frame;
  const share = ({ median }: SpreadChart['rows'][number], value: number): number => value / median - 1;
  const dots = rows.flatMap((row, y) => row.dots.map((dot) => ({ ...dot, row, y })));
  const ends = rows.flatMap((row) => [share(row, row.min), share(row, row.max)]);
  const reach = Math.max(0.01, ...ends.map(Math.abs)) * 1.08;
  const axis = valueAxis(frame, 'ratio', reach, {
    text: isNarrow(frame) ? 'against the median' : "against the point's own median",
    gap: 28,
  });
  return {
    ...base(frame),
    grid: grid({ right: 20 }),
    xAxis: {
      ...axis,
      min: Math.max(-reach, Math.min(...ends, -0.01) * 1.3),
      max: reach,
      axisLabel: {
        ...axis.axisLabel,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: (value: number) => (value === 0 ? formatPercent(0) : formatSigned(value, 'ratio')),
      },
    },
    yAxis: rowAxis(
      frame,
      rows.map(({ name }) => name),
    ),
    series: [
      {
        type: 'custom',
        name: 'spread',
        z: 2,
        encode: { x: [1, 2], y: 0 },
        data: rows.map((row, y) => [y, share(row, row.min), share(row, row.max)]),
        tooltip: tipOf(rows, ({ name, notes }) => [name, ...notes.map(plainText)]),
        renderItem: (params, api) => {
          const row = rows[params.dataIndex];
          if (!row) return null;
          const color = themeColor(row.color, theme);
          const x = (value: number): number => api.coord([share(row, value), params.dataIndex])[0] ?? 0;
          const y = api.coord([0, params.dataIndex])[1] ?? 0;
          const line = (x1: number, y1: number, x2: number, y2: number, width: number, stroke: string) => ({
            type: 'line' as const,
            shape: { x1, y1, x2, y2 },
            style: { stroke, lineWidth: width },
          });
          const [from, to] = row.box;
          return {
            type: 'group',
            children: [
              line(x(row.min), y, x(row.max), y, 1, color),
              {
                type: 'rect' as const,
                shape: { x: x(from), y: y - 7, width: Math.max(1, x(to) - x(from)), height: 14 },
                style: { fill: color, opacity: 0.3, stroke: color, lineWidth: 1 },
              },
              line(x(row.median), y - 8, x(row.median), y + 8, 2, theme.ink),
            ],
          };
        },
      },
      {
        type: 'scatter',
        name: 'values',
        z: 3,
        data: dots.map(({ row, y, value, outlier }) => ({
          value: [share(row, value), y],
          symbol: outlier ? 'triangle' : 'circle',
          symbolSize: outlier ? 10 : 4,
          itemStyle: outlier
            ? { color: theme.surface, borderColor: theme.ink, borderWidth: 1.5 }
            : { color: theme.ink, opacity: 0.55 },
        })),
        tooltip: tipOf(dots, ({ row, value, note, outlier }) => [
          row.name,
          `${formatQuantity(value, unit)}, ${plainText(note)}`,
          ...(outlier ? ['outlier: counted, marked, not removed'] : []),
        ]),
      },
    ],
  };
}
