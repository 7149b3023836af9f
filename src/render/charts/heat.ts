import type { EChartsOption } from 'echarts';
import type { HeatChart } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { plainText } from '../value.js';
import { axisName, axisStyle, base, grid, isNarrow, type Frame, textOn, tipOf } from './chart.js';

/** Height of a cell with two lines of text. */
const cellHeight = 44;

/** Slim rows of few ranks are as high as their labels; hundreds of rows share a height that fits a screen. */
const slimHeight = 16;
const slimTotal = 640;

export const heatHeight = ({ y, slim }: HeatChart): number =>
  70 + (slim ? Math.min(slimTotal, slimHeight * y.values.length) : cellHeight * y.values.length);

/** Maximum rows that all have a label; with more, every nth row has one, counted from the top. */
const maxLabels = 32;

const everyNth = <T extends { axisLabel: object }>(axis: T, rows: number) => ({
  ...axis,
  axisLabel: {
    ...axis.axisLabel,
    interval: (index: number) => (rows - 1 - index) % Math.ceil(rows / maxLabels) === 0,
  },
});

/** Values over two sizes, with text in each cell. */
export function heatOption({ x, y, cells, slim }: HeatChart, frame: Frame): EChartsOption {
  const { theme } = frame;
  const axis = ({ name, values }: HeatChart['x'], gap: number) => ({
    type: 'category' as const,
    data: [...values],
    ...axisStyle(frame),
    splitLine: { show: false },
    ...axisName(name, gap),
  });
  return {
    ...base(frame),
    grid: grid({ left: 16 }),
    xAxis: axis(x, 28),
    yAxis: slim ? everyNth(axis(y, 44), y.values.length) : axis(y, 44),
    series: [
      {
        type: 'custom',
        encode: { x: 0, y: 1 },
        data: cells.map((cell) => [cell.x, cell.y]),
        renderItem: (params, api) => {
          const cell = cells[params.dataIndex];
          if (!cell) return null;
          const [left = 0, top = 0] = api.coord([cell.x, cell.y]);
          const [w = 0, h = 0] = api.size!([1, 1]) as number[];
          const fill = cell.shade === null ? theme.surface : themeColor(`shade ${cell.shade}`, theme);
          if (slim) {
            // On whole pixels, so that the background does not show between cells.
            const [x0, y0] = [Math.round(left - w / 2), Math.round(top - h / 2)];
            const [x1, y1] = [Math.round(left + w / 2), Math.round(top + h / 2)];
            return {
              type: 'rect',
              shape: { x: x0, y: y0, width: Math.max(1, x1 - x0), height: Math.max(1, y1 - y0) },
              style: { fill },
            };
          }
          return {
            type: 'rect',
            shape: { x: left - w / 2 + 1, y: top - h / 2 + 1, width: w - 2, height: h - 2 },
            style: { fill, stroke: theme.line },
            textContent: {
              type: 'text',
              style: {
                text: cell.lines
                  .slice(0, isNarrow(frame) ? 1 : 2)
                  .map(plainText)
                  .join('\n'),
                fill: cell.shade === null ? theme.muted : textOn(fill),
                fontSize: 11,
                lineHeight: 15,
                align: 'center',
              },
            },
            textConfig: { position: 'inside' },
          };
        },
        tooltip: tipOf(cells, ({ lines, notes: [title = '', ...notes] }) => [
          plainText(title),
          ...[...lines, ...notes].map(plainText),
        ]),
      },
    ],
  };
}
