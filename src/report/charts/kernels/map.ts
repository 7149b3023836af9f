import type { KernelMap, KernelResult, KernelsResult } from '../../../model/documents/kernels.js';
import { formatPercent, formatQuantity } from '../../format.js';
import { caseLabel } from '../../kernel-words.js';
import { axisName, axisStyle, base, grid, isNarrow, textOn, tip, type Chart } from '../chart.js';

interface Cell {
  x: number;
  y: number;
  one: KernelResult;
}

export function cellsOf({ cases }: KernelsResult, { cells }: KernelMap): Cell[] {
  const byId = new Map(cases.map((one) => [one.case, one]));
  return cells.flatMap(({ x, y, case: id }) => {
    const one = byId.get(id);
    return one ? [{ x, y, one }] : [];
  });
}

/** Shares of the roof where it is known, else the logarithm of time from the shortest to the longest. */
function shadeOf(cells: readonly Cell[]): (one: KernelResult) => number | null {
  if (cells.every(({ one }) => one.median_ns === null || one.roof_share.value !== null))
    return ({ roof_share: share }) => (share.value === null ? null : Math.min(1, share.value));
  const logs = cells.flatMap(({ one }) => (one.median_ns === null ? [] : [Math.log(one.median_ns)]));
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  return ({ median_ns: ns }) =>
    ns === null ? null : high > low ? 1 - (Math.log(ns) - low) / (high - low) : 1;
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

/** Medians over two swept sizes; the darker, the closer to the roof. `part` is the number of the map. */
export const kernelMapChart: Chart<KernelsResult> = {
  height: ({ maps }, part) => 70 + cellHeight * (maps[Number(part)]?.y.values.length ?? 1),
  build: (input) => {
    const { result, part, theme, width } = input;
    const map = result.maps[Number(part)];
    if (!map) return base(input);
    const cells = cellsOf(result, map);
    const shade = shadeOf(cells);
    const axis = (name: string, values: string[], gap: number) => ({
      type: 'category' as const,
      data: values,
      ...axisStyle(input),
      splitLine: { show: false },
      ...axisName(name, gap),
    });
    return {
      ...base(input),
      grid: grid({ left: 16 }),
      xAxis: axis(map.x.name, map.x.values, 28),
      yAxis: axis(map.y.name, map.y.values, 44),
      series: [
        {
          type: 'custom',
          encode: { x: 0, y: 1 },
          data: cells.map(({ x, y }) => [x, y]),
          renderItem: (params, api) => {
            const cell = cells[params.dataIndex];
            if (!cell) return null;
            const [x = 0, y = 0] = api.coord([cell.x, cell.y]);
            const [w = 0, h = 0] = api.size!([1, 1]) as number[];
            const value = shade(cell.one);
            const fill = value === null ? theme.surface : colourOf(value);
            return {
              type: 'rect',
              shape: { x: x - w / 2 + 1, y: y - h / 2 + 1, width: w - 2, height: h - 2 },
              style: { fill, stroke: theme.line },
              textContent: {
                type: 'text',
                style: {
                  text: textOf(cell.one, isNarrow(width)),
                  fill: value === null ? theme.muted : textOn(fill),
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
              return cell ? tip(caseLabel(cell.one, true), textOf(cell.one, false)) : '';
            },
          },
        },
      ],
    };
  },
};

function textOf({ median_ns: ns, roof_share: share, outcome }: KernelResult, narrow: boolean): string {
  if (ns === null) return outcome.replaceAll('_', ' ');
  const time = formatQuantity(ns, 'ns');
  return narrow || share.value === null ? time : `${time}\n${formatPercent(share.value)} of roof`;
}
