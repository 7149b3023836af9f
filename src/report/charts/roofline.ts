import type { SeriesOption } from 'echarts';
import type { MachineRoofline } from '../../model/documents/roofline.js';
import { formatBytes, formatNumber, formatQuantity, nbsp } from '../../vocabulary/format.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { bandwidthRoofs, type RooflinePoint, rooflinePoints } from '../../views/profile-series.js';
import { classColors } from '../palette.js';
import { classKey } from './classes.js';
import { axisName, axisStyle, base, grid, isNarrow, tip, type Chart, type ChartInput } from './chart.js';

const pointName = ({ stage, class: name }: RooflinePoint): string =>
  name === null ? stage : `${classLabels[name]} in ${stage}`;

const decadeBelow = (value: number): number => 10 ** Math.floor(Math.log10(value));
const decadeAbove = (value: number): number => 10 ** Math.ceil(Math.log10(value));

interface Extent {
  x: [number, number];
  y: [number, number];
}

function extentOf(points: RooflinePoint[], roofline: MachineRoofline): Extent {
  const peaks = roofline.compute.map((peak) => peak.flops_per_s);
  const ridge = roofline.ridge_flop_per_byte;
  const x = [...points.map((point) => point.intensity), ridge / 20, ridge * 5];
  const y = [...points.map((point) => point.flops_per_s), ...peaks];
  return {
    x: [decadeBelow(Math.min(...x)), decadeAbove(Math.max(...x) * 1.2)],
    y: [decadeBelow(Math.min(...y) / 1.5), decadeAbove(Math.max(...y) * 1.2)],
  };
}

function roofSeries(input: ChartInput, roofline: MachineRoofline, { x, y }: Extent): SeriesOption[] {
  const { theme } = input;
  const peaks = roofline.compute.toSorted((a, b) => b.flops_per_s - a.flops_per_s);
  const top = peaks[0]?.flops_per_s ?? y[1];
  const roofs = bandwidthRoofs(roofline);
  const fastest = Math.max(...roofs.map((roof) => roof.bytes_per_s));
  const line = { type: 'line' as const, showSymbol: true, symbolSize: 1, silent: true, z: 1 };
  // The labels' ground hides the lines that cross them.
  const label = {
    show: true,
    color: theme.muted,
    fontSize: 11,
    backgroundColor: theme.surface,
    padding: [1, 3],
  };
  return [
    ...roofs.map((roof, index): SeriesOption => {
      const from = Math.max(x[0], y[0] / roof.bytes_per_s);
      const at = isNarrow(input.width) ? '' : ` at ${formatBytes(roof.working_set_bytes)}`;
      const text = `${roof.level} ${formatQuantity(roof.bytes_per_s, 'B/s')}${at}`;
      // Beside the middle of the slope: the last-level cache's above its line, DRAM's below.
      const middle = Math.sqrt(from * (top / roof.bytes_per_s)) / (isNarrow(input.width) ? 1.6 : 1);
      return {
        ...line,
        name: text,
        lineStyle: { color: theme.ink, width: 1.5, type: index === 0 ? 'solid' : 'dashed' },
        itemStyle: { color: theme.ink },
        data: [
          [from, from * roof.bytes_per_s],
          {
            value: [middle, middle * roof.bytes_per_s],
            label: {
              ...label,
              position: index === 0 ? 'right' : 'left',
              offset: index === 0 ? [8, 7] : [-8, -7],
              formatter: text,
            },
          },
          [top / roof.bytes_per_s, top],
        ],
      };
    }),
    ...peaks.map((peak, index): SeriesOption => {
      const text = `${peak.dtype} ${formatQuantity(peak.flops_per_s, 'FLOP/s')}`;
      const above = peaks[index - 1];
      // Two roofs closer than a line of text: the lower one's label goes below its line.
      const crowded = above !== undefined && above.flops_per_s / peak.flops_per_s < 1.35;
      return {
        ...line,
        name: text,
        lineStyle: { color: theme.ink, width: 1.5 },
        itemStyle: { color: theme.ink },
        data: [
          [peak.flops_per_s / fastest, peak.flops_per_s],
          {
            value: [x[1], peak.flops_per_s],
            label: { ...label, position: [-6, crowded ? 6 : -16], align: 'right', formatter: text },
          },
        ],
      };
    }),
    {
      ...line,
      name: 'ridge',
      lineStyle: { color: theme.muted, width: 1, type: 'dotted' },
      itemStyle: { color: theme.muted },
      data: [
        {
          value: [roofline.ridge_flop_per_byte, y[0]],
          label: {
            ...label,
            position: 'right',
            offset: [2, -8],
            formatter: `ridge ${formatNumber(roofline.ridge_flop_per_byte)}`,
          },
        },
        [roofline.ridge_flop_per_byte, roofline.compute[0]?.flops_per_s ?? y[1]],
      ],
    },
  ];
}

/** Stage: diamond. Class of prefill: triangle, of decode: circle; the colour is the class's. */
function symbolOf(point: RooflinePoint): { symbol: string; symbolSize: number } {
  if (point.class === null) return { symbol: 'diamond', symbolSize: 17 };
  return { symbol: point.stage === 'prefill' ? 'triangle' : 'circle', symbolSize: 11 };
}

function pointSeries({ theme }: ChartInput, points: RooflinePoint[]): SeriesOption {
  return {
    type: 'scatter',
    name: 'measured',
    z: 3,
    data: points.map((point) => ({
      value: [point.intensity, point.flops_per_s],
      ...symbolOf(point),
      itemStyle: {
        color: point.class === null ? theme.ink : classColors[point.class],
        borderColor: theme.surface,
        borderWidth: 1.5,
        opacity: 1,
      },
      label: {
        show: point.class === null,
        // The classes of a stage lie beside it: GEMM close by, at nearly the same height.
        position: 'bottom' as const,
        color: theme.ink,
        textBorderColor: theme.surface,
        textBorderWidth: 3,
        fontWeight: 'bold' as const,
        formatter: pointName(point),
      },
    })),
    tooltip: {
      formatter: (params) => {
        const point = points[(params as { dataIndex: number }).dataIndex];
        if (!point) return '';
        return tip(
          pointName(point),
          `${formatQuantity(point.flops_per_s, 'FLOP/s')} achieved`,
          `${formatNumber(point.intensity)}${nbsp}FLOP/byte`,
        );
      },
    },
  };
}

const powerOfTen = (value: number, unit: string): string => formatQuantity(value, unit, 1);

/** Achieved FLOP/s against arithmetic intensity, log-log, below this machine's measured roofs. */
export const rooflineChart: Chart = {
  height: () => 400,
  key: (result) => {
    const points = rooflinePoints(result);
    return classKey((name) => points.some((point) => point.class === name));
  },
  build: (input) => {
    const { roofline } = input.result;
    if (!roofline) return base(input);
    const points = rooflinePoints(input.result);
    const extent = extentOf(points, roofline);
    return {
      ...base(input),
      grid: grid({ top: 16 }),
      xAxis: {
        type: 'log',
        min: extent.x[0],
        max: extent.x[1],
        ...axisStyle(input),
        axisLabel: { color: input.theme.muted, formatter: (value: number) => formatNumber(value, 1) },
        ...axisName('arithmetic intensity, FLOP per byte', 28),
      },
      yAxis: {
        type: 'log',
        min: extent.y[0],
        max: extent.y[1],
        ...axisStyle(input),
        axisLabel: { color: input.theme.muted, formatter: (value: number) => powerOfTen(value, 'FLOP/s') },
      },
      series: [...roofSeries(input, roofline, extent), pointSeries(input, points)],
    };
  },
};
