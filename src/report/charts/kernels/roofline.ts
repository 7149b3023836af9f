import type { SeriesOption } from 'echarts';
import type { KernelResult, KernelsResult } from '../../../model/documents/kernels.js';
import { placed } from '../../../views/kernels-series.js';
import { caseLabel } from '../../../vocabulary/kernel-cases.js';
import { formatNumber, formatPercent, formatQuantity, nbsp } from '../../../vocabulary/format.js';
import { classLabels } from '../../../vocabulary/op-classes.js';
import { classColors } from '../../palette.js';
import { axisName, axisStyle, base, grid, tip, type Chart, type ChartInput } from '../chart.js';

interface Roofs {
  bandwidth: number | null;
  peaks: { dtype: string; flops: number }[];
}

function roofsOf({ roofs }: KernelsResult): Roofs {
  const peaks = roofs.compute.flatMap(({ dtype, flops_per_s: peak }) =>
    peak.value === null ? [] : [{ dtype, flops: peak.value }],
  );
  return { bandwidth: roofs.bytes_per_s.value, peaks: peaks.toSorted((a, b) => b.flops - a.flops) };
}

const decadeBelow = (value: number): number => 10 ** Math.floor(Math.log10(value));
const decadeAbove = (value: number): number => 10 ** Math.ceil(Math.log10(value));

interface Extent {
  x: [number, number];
  y: [number, number];
}

function extentOf(points: readonly KernelResult[], { bandwidth, peaks }: Roofs): Extent {
  const ridges = bandwidth === null ? [] : peaks.map(({ flops }) => flops / bandwidth);
  const x = [...points.map(({ intensity }) => intensity!), ...ridges.map((ridge) => ridge * 3), 1];
  const y = [...points.map(({ flops_per_s: rate }) => rate!), ...peaks.map(({ flops }) => flops)];
  return {
    x: [decadeBelow(Math.min(...x) / 1.2), decadeAbove(Math.max(...x) * 1.2)],
    y: [decadeBelow(Math.min(...y) / 1.5), decadeAbove(Math.max(...y) * 1.2)],
  };
}

function roofSeries(
  { theme }: ChartInput<KernelsResult>,
  { bandwidth, peaks }: Roofs,
  { x, y }: Extent,
): SeriesOption[] {
  const line = { type: 'line' as const, showSymbol: true, symbolSize: 1, silent: true, z: 1 };
  const label = {
    show: true,
    color: theme.muted,
    fontSize: 11,
    backgroundColor: theme.surface,
    padding: [1, 3],
  };
  const style = { lineStyle: { color: theme.ink, width: 1.5 }, itemStyle: { color: theme.ink } };
  const top = peaks[0]?.flops ?? y[1];
  const slope: SeriesOption[] = [];
  if (bandwidth !== null) {
    const from = Math.max(x[0], y[0] / bandwidth);
    const middle = Math.sqrt((from * top) / bandwidth);
    const formatter = formatQuantity(bandwidth, 'B/s');
    slope.push({
      ...line,
      ...style,
      name: 'memory',
      data: [
        [from, from * bandwidth],
        {
          value: [middle, middle * bandwidth],
          label: { ...label, position: 'left', offset: [-8, -7], formatter },
        },
        [top / bandwidth, top],
      ],
    });
  }
  return [
    ...slope,
    ...peaks.map(({ dtype, flops }, index): SeriesOption => {
      const above = peaks[index - 1];
      const crowded = above !== undefined && above.flops / flops < 1.35;
      const formatter = `${dtype} ${formatQuantity(flops, 'FLOP/s')}`;
      return {
        ...line,
        ...style,
        name: formatter,
        data: [
          [bandwidth === null ? x[0] : flops / bandwidth, flops],
          {
            value: [x[1], flops],
            label: { ...label, position: [-6, crowded ? 6 : -16], align: 'right', formatter },
          },
        ],
      };
    }),
  ];
}

/** Achieved FLOP/s against arithmetic intensity, log-log, a point a case in the colour of its class. */
export const kernelRooflineChart: Chart<KernelsResult> = {
  height: () => 420,
  key: (result) =>
    [...new Set(placed(result).map((one) => one.class))].map((one) => ({
      name: classLabels[one],
      color: classColors[one],
    })),
  build: (input) => {
    const { result, theme } = input;
    const points = placed(result);
    const roofs = roofsOf(result);
    if (points.length === 0) return base(input);
    const extent = extentOf(points, roofs);
    const axis = (range: [number, number]) => ({
      type: 'log' as const,
      min: range[0],
      max: range[1],
      ...axisStyle(input),
    });
    return {
      ...base(input),
      grid: grid({ top: 16 }),
      xAxis: {
        ...axis(extent.x),
        axisLabel: { color: theme.muted, formatter: (value: number) => formatNumber(value, 1) },
        ...axisName('arithmetic intensity, FLOP per byte', 28),
      },
      yAxis: {
        ...axis(extent.y),
        axisLabel: { color: theme.muted, formatter: (value: number) => formatQuantity(value, 'FLOP/s', 1) },
      },
      series: [
        ...roofSeries(input, roofs, extent),
        {
          type: 'scatter',
          name: 'measured',
          z: 3,
          data: points.map((one) => ({
            value: [one.intensity!, one.flops_per_s!],
            symbol: 'circle',
            symbolSize: 11,
            itemStyle: {
              color: classColors[one.class],
              borderColor: theme.surface,
              borderWidth: 1.5,
              opacity: 1,
            },
          })),
          tooltip: {
            formatter: (params) => {
              const one = points[(params as { dataIndex: number }).dataIndex];
              return one ? tip(caseLabel(one, true), ...notesOf(one)) : '';
            },
          },
        },
      ],
    };
  },
};

function notesOf(one: KernelResult): string[] {
  return [
    `${classLabels[one.class]}: ${formatQuantity(one.median_ns!, 'ns')}`,
    `${formatQuantity(one.flops_per_s!, 'FLOP/s')} at ${formatNumber(one.intensity!)}${nbsp}FLOP/byte`,
    one.roof_share.value === null ? '' : `${formatPercent(one.roof_share.value)} of the roof`,
  ].filter((note) => note !== '');
}
