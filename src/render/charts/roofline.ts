import type { EChartsOption, SeriesOption } from 'echarts';
import { formatNumber, formatQuantity } from '../../vocabulary/format.js';
import type { RooflineChart } from '../../views/chart.js';
import { themeColor } from '../palette.js';
import { plainText } from '../value.js';
import { axisName, axisStyle, base, grid, isNarrow, type Frame, tipOf } from './chart.js';

interface Extent {
  x: [number, number];
  y: [number, number];
}

const decadeBelow = (value: number): number => 10 ** Math.floor(Math.log10(value));
const decadeAbove = (value: number): number => 10 ** Math.ceil(Math.log10(value));

/** Achieved FLOP/s against arithmetic intensity, both logarithmic; the axis includes all ridge points. */
export function rooflineOption(chart: RooflineChart, frame: Frame): EChartsOption {
  const { points, slopes, peaks } = chart;
  const ridges = slopes.flatMap((slope) => peaks.map((peak) => peak.flops_per_s / slope.bytes_per_s));
  const x = [
    ...points.map(({ intensity }) => intensity),
    ...(ridges.length === 0 ? [1] : [Math.min(...ridges) / 20, Math.max(...ridges) * 3]),
  ];
  const y = [...points, ...peaks].map(({ flops_per_s: rate }) => rate);
  const extent: Extent = {
    x: [decadeBelow(Math.min(...x)), decadeAbove(Math.max(...x) * 1.2)],
    y: [decadeBelow(Math.min(...y) / 1.5), decadeAbove(Math.max(...y) * 1.2)],
  };
  const axis = ([min, max]: [number, number], text: (value: number) => string) => ({
    type: 'log' as const,
    min,
    max,
    ...axisStyle(frame),
    axisLabel: { color: frame.theme.muted, formatter: text },
  });
  return {
    ...base(frame),
    grid: grid({ top: 16 }),
    xAxis: {
      ...axis(extent.x, (value) => formatNumber(value, 1)),
      ...axisName('arithmetic intensity, FLOP per byte', 28),
    },
    yAxis: axis(extent.y, (value) => formatQuantity(value, 'FLOP/s', 1)),
    series: [...roofSeries(frame, chart, extent), pointSeries(frame, points)],
  };
}

function roofSeries(
  frame: Frame,
  { slopes, peaks: unsorted, ridge }: RooflineChart,
  { x, y }: Extent,
): SeriesOption[] {
  const { theme } = frame;
  const peaks = unsorted.toSorted((a, b) => b.flops_per_s - a.flops_per_s);
  const top = peaks[0]?.flops_per_s ?? y[1];
  const fastest = Math.max(...slopes.map(({ bytes_per_s: rate }) => rate));
  const line = { type: 'line' as const, showSymbol: true, symbolSize: 1, silent: true, z: 1 };
  const itemStyle = { color: theme.ink };
  // The labels' background hides lines that cross them.
  const label = {
    show: true,
    color: theme.muted,
    fontSize: 11,
    backgroundColor: theme.surface,
    padding: [1, 3],
  };
  return [
    ...slopes.map(({ name, bytes_per_s: rate, detail = '' }, index): SeriesOption => {
      const text = `${name} ${formatQuantity(rate, 'B/s')}${isNarrow(frame) ? '' : plainText(detail)}`.trim();
      // With two slopes, the label of the first is below its line, that of the second above.
      const side = slopes.length > 1 && index === 0 ? 'right' : 'left';
      const from = Math.max(x[0], y[0] / rate);
      // At the middle of the slope.
      const middle = Math.sqrt(from * (top / rate)) / (isNarrow(frame) ? 1.6 : 1);
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
      // On a phone, the label of a peak would lie on the points below its line.
      const text = isNarrow(frame) ? dtype : `${dtype} ${formatQuantity(flops, 'FLOP/s')}`;
      const above = peaks[index - 1];
      // If two rooflines are closer than a line of text, the lower one's label goes below its line.
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

const pointSeries = ({ theme }: Frame, points: RooflineChart['points']): SeriesOption => ({
  type: 'scatter',
  name: 'measured',
  z: 3,
  data: points.map(({ name, group, intensity, flops_per_s: rate, color, symbol, link }) => ({
    value: [intensity, rate],
    cursor: link === undefined ? 'default' : 'pointer',
    symbol,
    symbolSize: group === null ? 17 : 11,
    itemStyle: { color: themeColor(color, theme), borderColor: theme.surface, borderWidth: 1.5, opacity: 1 },
    label: {
      show: group === null,
      // Other measurements are to the left and right, at nearly the same height.
      position: 'bottom' as const,
      color: theme.ink,
      textBorderColor: theme.surface,
      textBorderWidth: 3,
      fontWeight: 'bold' as const,
      formatter: name,
    },
  })),
  tooltip: tipOf(points, ({ name, intensity, flops_per_s: rate, notes, link }) => [
    name,
    `${formatQuantity(rate, 'FLOP/s')} at ${formatQuantity(intensity, 'FLOP/byte')}`,
    ...notes.map(plainText),
    ...(link === undefined ? [] : ['a click leads to it']),
  ]),
});
