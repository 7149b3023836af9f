import type { EChartsOption, SeriesOption } from 'echarts';
import { formatNumber, formatQuantity } from '../../vocabulary/format.js';
import type { Theme } from '../palette.js';
import { axisName, axisStyle, base, grid, isNarrow, tip } from './chart.js';

/** What bounds the points. The first slope is drawn solid, the others dashed. */
export interface PlotRoofs {
  slopes: { text: string; bytes_per_s: number; side: 'left' | 'right' }[];
  peaks: { dtype: string; flops_per_s: number }[];
  /** Marked where it is given. */
  ridge: number | null;
}

export interface PlotPoint {
  intensity: number;
  flops_per_s: number;
  color: string;
  symbol: string;
  size: number;
  /** Written at the point; null leaves it to the tooltip. */
  label: string | null;
  /** Lines of the tooltip. */
  tip: string[];
}

interface Extent {
  x: [number, number];
  y: [number, number];
}

const decadeBelow = (value: number): number => 10 ** Math.floor(Math.log10(value));
const decadeAbove = (value: number): number => 10 ** Math.ceil(Math.log10(value));

/**
 * Achieved FLOP/s against arithmetic intensity, log-log.
 * @param reach intensities that the axis shows besides those of the points
 */
export function rooflineOption(
  input: { theme: Theme; width: number },
  roofs: PlotRoofs,
  points: readonly PlotPoint[],
  reach: readonly number[],
): EChartsOption {
  const x = [...points.map(({ intensity }) => intensity), ...reach];
  const y = [...points, ...roofs.peaks].map(({ flops_per_s: rate }) => rate);
  const extent: Extent = {
    x: [decadeBelow(Math.min(...x)), decadeAbove(Math.max(...x) * 1.2)],
    y: [decadeBelow(Math.min(...y) / 1.5), decadeAbove(Math.max(...y) * 1.2)],
  };
  const axis = ([min, max]: [number, number], text: (value: number) => string) => ({
    type: 'log' as const,
    min,
    max,
    ...axisStyle(input),
    axisLabel: { color: input.theme.muted, formatter: text },
  });
  return {
    ...base(input),
    grid: grid({ top: 16 }),
    xAxis: {
      ...axis(extent.x, (value) => formatNumber(value, 1)),
      ...axisName('arithmetic intensity, FLOP per byte', 28),
    },
    yAxis: axis(extent.y, (value) => formatQuantity(value, 'FLOP/s', 1)),
    series: [...roofSeries(input, roofs, extent), pointSeries(input, points)],
  };
}

function roofSeries(
  { theme, width }: { theme: Theme; width: number },
  { slopes, peaks: unsorted, ridge }: PlotRoofs,
  { x, y }: Extent,
): SeriesOption[] {
  const peaks = unsorted.toSorted((a, b) => b.flops_per_s - a.flops_per_s);
  const top = peaks[0]?.flops_per_s ?? y[1];
  const fastest = Math.max(...slopes.map(({ bytes_per_s: rate }) => rate));
  const line = { type: 'line' as const, showSymbol: true, symbolSize: 1, silent: true, z: 1 };
  const itemStyle = { color: theme.ink };
  // The labels' ground hides the lines that cross them.
  const label = {
    show: true,
    color: theme.muted,
    fontSize: 11,
    backgroundColor: theme.surface,
    padding: [1, 3],
  };
  return [
    ...slopes.map(({ text, bytes_per_s: rate, side }, index): SeriesOption => {
      const from = Math.max(x[0], y[0] / rate);
      // At the middle of the slope.
      const middle = Math.sqrt(from * (top / rate)) / (isNarrow(width) ? 1.6 : 1);
      return {
        ...line,
        itemStyle,
        name: text,
        lineStyle: { color: theme.ink, width: 1.5, type: index === 0 ? 'solid' : 'dashed' },
        data: [
          [from, from * rate],
          {
            value: [middle, middle * rate],
            label: {
              ...label,
              position: side,
              offset: side === 'right' ? [8, 7] : [-8, -7],
              formatter: text,
            },
          },
          [top / rate, top],
        ],
      };
    }),
    ...peaks.map(({ dtype, flops_per_s: flops }, index): SeriesOption => {
      const text = `${dtype} ${formatQuantity(flops, 'FLOP/s')}`;
      const above = peaks[index - 1];
      // Two roofs closer than a line of text: the lower one's label goes below its line.
      const crowded = above !== undefined && above.flops_per_s / flops < 1.35;
      return {
        ...line,
        itemStyle,
        name: text,
        lineStyle: { color: theme.ink, width: 1.5 },
        data: [
          [slopes.length === 0 ? x[0] : flops / fastest, flops],
          {
            value: [x[1], flops],
            label: { ...label, position: [-6, crowded ? 6 : -16], align: 'right', formatter: text },
          },
        ],
      };
    }),
    ...(ridge === null
      ? []
      : [
          {
            ...line,
            name: 'ridge',
            lineStyle: { color: theme.muted, width: 1, type: 'dotted' as const },
            itemStyle: { color: theme.muted },
            data: [
              {
                value: [ridge, y[0]],
                label: {
                  ...label,
                  position: 'right' as const,
                  offset: [2, -8],
                  formatter: `ridge ${formatNumber(ridge)}`,
                },
              },
              [ridge, unsorted[0]?.flops_per_s ?? y[1]],
            ],
          } satisfies SeriesOption,
        ]),
  ];
}

const pointSeries = ({ theme }: { theme: Theme }, points: readonly PlotPoint[]): SeriesOption => ({
  type: 'scatter',
  name: 'measured',
  z: 3,
  data: points.map(({ intensity, flops_per_s: rate, color, symbol, size, label }) => ({
    value: [intensity, rate],
    symbol,
    symbolSize: size,
    itemStyle: { color, borderColor: theme.surface, borderWidth: 1.5, opacity: 1 },
    label: {
      show: label !== null,
      // What else is measured lies beside it, at nearly the same height.
      position: 'bottom' as const,
      color: theme.ink,
      textBorderColor: theme.surface,
      textBorderWidth: 3,
      fontWeight: 'bold' as const,
      formatter: label ?? '',
    },
  })),
  tooltip: {
    formatter: (params) => {
      const [title, ...notes] = points[(params as { dataIndex: number }).dataIndex]?.tip ?? [];
      return title === undefined ? '' : tip(title, ...notes);
    },
  },
});
