import type { EChartsOption } from 'echarts';
import type { Theme } from '../palette.js';
import { axisName, axisStyle, base, grid, textOn, tip } from './chart.js';

export interface HeatCell {
  x: number;
  y: number;
  /** 0 (light) to 1 (dark); null: no value, drawn as the paper. */
  shade: number | null;
  text: string;
  /** Title and line of the tooltip. */
  tip: [title: string, ...lines: string[]];
}

export interface HeatMapFacts {
  x: { name: string; values: string[] };
  y: { name: string; values: string[] };
  cells: readonly HeatCell[];
}

/** Light to dark blue of ColorBrewer's Blues: one hue, so that it reads in grey and to the colour-blind alike. */
const low = [222, 235, 247] as const;
const high = [8, 69, 148] as const;

function colourOf(shade: number): string {
  const mixed = low.map((from, index) => Math.round(from + shade * (high[index]! - from)));
  return `#${mixed.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

/** Height of a cell with two lines of text. */
const cellHeight = 44;

export const heatMapHeight = (rows: number): number => 70 + cellHeight * rows;

/** Values over two sizes, each written into its cell. */
export function heatMapOption(
  input: { theme: Theme; width: number },
  { x, y, cells }: HeatMapFacts,
): EChartsOption {
  const { theme } = input;
  const axis = ({ name, values }: HeatMapFacts['x'], gap: number) => ({
    type: 'category' as const,
    data: values,
    ...axisStyle(input),
    splitLine: { show: false },
    ...axisName(name, gap),
  });
  return {
    ...base(input),
    grid: grid({ left: 16 }),
    xAxis: axis(x, 28),
    yAxis: axis(y, 44),
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
          const fill = cell.shade === null ? theme.surface : colourOf(cell.shade);
          return {
            type: 'rect',
            shape: { x: left - w / 2 + 1, y: top - h / 2 + 1, width: w - 2, height: h - 2 },
            style: { fill, stroke: theme.line },
            textContent: {
              type: 'text',
              style: {
                text: cell.text,
                fill: cell.shade === null ? theme.muted : textOn(fill),
                fontSize: 11,
                align: 'center',
              },
            },
            textConfig: { position: 'inside' },
          };
        },
        tooltip: {
          formatter: (params) => {
            const cell = cells[(params as { dataIndex: number }).dataIndex];
            return cell ? tip(...cell.tip) : '';
          },
        },
      },
    ],
  };
}
