import type { LineSeriesOption, SeriesOption } from 'echarts';
import { formatQuantity } from '../../vocabulary/format.js';
import type { LinesChart, Panel, Series } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { isNarrow, type Frame } from './chart.js';

export const largest = (values: readonly number[]): number =>
  values.reduce((most, value) => Math.max(most, value), 0);

/** Lowest and highest x. */
export function extentOf(panels: readonly Panel[]): [number, number] {
  const extent: [number, number] = [Infinity, -Infinity];
  for (const { series } of panels)
    for (const { points } of series)
      for (const [x] of points) {
        extent[0] = Math.min(extent[0], x);
        extent[1] = Math.max(extent[1], x);
      }
  return extent[0] > extent[1] ? [0, 0] : extent;
}

/** Bars of 95 % intervals, from low to high. */
export function intervals({ points, color }: Series, { theme }: Frame): SeriesOption[] {
  const known = points.flatMap(([x, , more]) => (more?.ci95 ? [[x, ...more.ci95] as const] : []));
  if (known.length === 0) return [];
  return [
    {
      type: 'custom',
      silent: true,
      clip: true,
      z: 4,
      encode: { x: 0, y: [1, 2] },
      data: known.map((point) => [...point]),
      renderItem: (params, api) => {
        const [rowIndex, from, to] = known[params.dataIndex] ?? [0, 0, 0];
        const [x = 0, low = 0] = api.coord([rowIndex, from]);
        const [, high = 0] = api.coord([rowIndex, to]);
        const line = (x1: number, y1: number, x2: number, y2: number) => ({
          type: 'line' as const,
          shape: { x1, y1, x2, y2 },
          style: { stroke: themeColor(color, theme), lineWidth: 1.5 },
        });
        return {
          type: 'group',
          children: [line(x, low, x, high), line(x - 5, low, x + 5, low), line(x - 5, high, x + 5, high)],
        };
      },
    },
  ];
}

/** Number of text rows above the lines for marks that are named there. */
export function markRoom({ marks = [], shades = [] }: LinesChart): number {
  const rows = marks.reduce((sum, { name, y }) => sum + (y === undefined ? name.split('\n').length : 0), 0);
  return Math.max(14 * rows, shades.some(({ color }) => color === undefined) ? 22 : 0);
}

/** Background areas, limits and vertical marks of a panel; ECharts attaches them to a series. */
export function backgroundMarks(
  { x, marks = [], shades = [], panels }: LinesChart,
  { bounds = [] }: Panel,
  frame: Frame,
): Partial<LineSeriesOption> {
  const { theme } = frame;
  const label = { color: theme.ink, fontSize: 11 };
  const last = 'categories' in x ? x.categories.length - 1 : Infinity;
  // Each name has its own rows, so that none hides another.
  let rows = 0;
  const vertical = marks
    .filter(({ y }) => y === undefined)
    .map(({ x: place, name, color }) => {
      const distance = 14 * rows + 4;
      rows += name.split('\n').length;
      // A name at an edge of the chart stays inside.
      const align = place === 0 ? 'left' : place === last ? 'right' : 'center';
      return {
        xAxis: place,
        name,
        lineStyle: { color: themeColor(color, theme), type: 'dotted' as const, width: 1.5 },
        label: { ...label, position: 'end' as const, distance, align: align as 'left', formatter: name },
      };
    });
  const horizontal = bounds.map(({ value, name }) => ({
    yAxis: value,
    name,
    lineStyle: { color: theme.muted, type: 'dashed' as const, width: 1.25 },
    label: { ...label, position: 'insideStartTop' as const, formatter: name },
  }));
  const [from, to] = extentOf(panels);
  const fits = (name: string, width: number) =>
    letterWidth * name.length < (width / (to - from)) * (frame.width - axisRoom);
  const areas = [
    ...shades.map((shade, nth): [object, object] => [
      {
        name: shade.color === undefined && fits(shade.name, shade.to - shade.from) ? shade.name : '',
        xAxis: shade.from,
        itemStyle: {
          color: themeColor(shade.color ?? 'idle', theme),
          opacity: shade.color ? 0.3 : nth % 2 === 0 ? 0.22 : 0.1,
        },
      },
      { xAxis: shade.to },
    ]),
    ...bounds.flatMap(({ ci95 }): [object, object][] =>
      ci95
        ? [[{ yAxis: ci95[0], itemStyle: { color: theme.muted, opacity: 0.16 } }, { yAxis: ci95[1] }]]
        : [],
    ),
  ];
  return {
    ...(areas.length > 0 && {
      markArea: {
        silent: true,
        label: { show: true, position: 'top' as const, color: theme.muted, fontSize: 11 },
        data: areas,
      },
    }),
    ...(vertical.length + horizontal.length > 0 && {
      markLine: { silent: true, symbol: 'none', data: [...vertical, ...horizontal] },
    }),
  };
}

/** Approximate width of a letter, and of the axis labels next to the lines, px. */
const letterWidth = 6;
const axisRoom = 90;

/** Below this share of the highest point a name would overlap the axis labels. */
const nearAxis = 0.15;

/** Named points on a line: names are above the highest point and points near the axis, below others, and inside at the edges. */
export function pointMarks({ marks = [], panels }: LinesChart, frame: Frame): SeriesOption[] {
  const markers = marks.flatMap(({ y, ...mark }) => (y === undefined ? [] : [{ ...mark, y }]));
  if (markers.length === 0) return [];
  const [from, to] = extentOf(panels);
  const top = largest(markers.map(({ y }) => y));
  const highest = markers.findLastIndex(({ y }) => y === top);
  return [
    {
      type: 'scatter',
      name: 'marks',
      symbolSize: 11,
      z: 4,
      tooltip: { show: false },
      data: markers.map(({ x, y, name, color }, index) => {
        const place = (x - from) / (to - from);
        const text = isNarrow(frame) ? name : `${name} ${formatQuantity(y, panels[0]!.unit)}`;
        const half = (letterWidth * text.length) / 2 / (frame.width - axisRoom);
        const align = place > 1 - half ? ('right' as const) : place < half ? ('left' as const) : undefined;
        return {
          value: [x, y],
          itemStyle: {
            color: themeColor(color, frame.theme),
            borderColor: frame.theme.surface,
            borderWidth: 2,
            opacity: 1,
          },
          label: {
            show: true,
            position: index === highest || y < nearAxis * top ? ('top' as const) : ('bottom' as const),
            ...(align && { align, offset: [align === 'left' ? -6 : 8, 0] }),
            color: frame.theme.ink,
            backgroundColor: frame.theme.surface,
            padding: [1, 3],
            borderRadius: 2,
            formatter: text,
          },
        };
      }),
    },
  ];
}
