import type { EChartsOption } from 'echarts';
import { formatMs, formatNumber, nbsp } from '../../vocabulary/format.js';
import { pointLabels } from '../../vocabulary/memory-points.js';
import { barColors, classColors, type Theme } from '../palette.js';
import { axisName, axisStyle, base, grid, isNarrow, secondsLabel, tip } from './chart.js';

type Point = 'baseline' | 'post_warmup' | 'peak';

export interface MemoryLine {
  name: string;
  color: string;
  /** [seconds, bytes] */
  points: readonly (readonly [number, number])[];
  /** Lines of one stack lie on each other, filled; each value holds from the moment before it. */
  stack?: boolean;
  dashed?: boolean;
}

export interface MemoryLinesFacts {
  lines: readonly MemoryLine[];
  /** What ran when, behind the lines. */
  phases: readonly { label: string; start_s: number; end_s: number }[];
  marks: readonly { point: Point; t_s: number; bytes: number }[];
  /** How the axis is divided, and what a number of bytes is called. */
  unit: { bytes: number; text: (bytes: number) => string; axis?: (bytes: number) => string };
  /** What the time axis is called. */
  since: string;
}

const pointColors: Record<Point, string> = {
  baseline: classColors.norm,
  post_warmup: classColors.attention,
  peak: classColors.sampling,
};

/** The curve rises from the first point and runs level through the others. */
const labelPlace: Record<Point, { position: 'top' | 'bottom'; align?: 'left'; offset?: [number, number] }> = {
  baseline: { position: 'bottom', align: 'left', offset: [-6, 0] },
  post_warmup: { position: 'bottom' },
  peak: { position: 'top' },
};

/** Bytes over time from 0, so that heights compare: phases behind, the three reported points on it. */
export function memoryLinesOption(
  input: { theme: Theme; width: number },
  { lines, phases, marks, unit, since }: MemoryLinesFacts,
): EChartsOption {
  const { theme } = input;
  const tone = theme.dark ? 'dark' : 'light';
  const times = lines.flatMap(({ points }) => [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0]);
  const first = Math.min(...times);
  const span = Math.max(...times) - first;
  /** Pixels that a phase's name has; one that does not fit is left to the table. */
  const fits = (label: string, seconds: number): boolean =>
    label.length * 6 < (seconds / span) * (input.width - 90);
  const scaled = (bytes: number): number => bytes / unit.bytes;
  const alone = lines.length === 1;
  return {
    ...base(input),
    grid: grid({ top: 36, right: 24, bottom: 12 }),
    tooltip: {
      ...base(input).tooltip,
      trigger: 'axis',
      formatter: (params) => {
        const shown = params as unknown as { value: [number, number]; seriesName: string }[];
        const [any] = shown;
        if (!any) return '';
        return tip(
          `${formatNumber(any.value[0])}${nbsp}s`,
          ...shown.map(({ value, seriesName }) => {
            const bytes = unit.text(value[1] * unit.bytes);
            return alone ? bytes : `${seriesName}: ${bytes}`;
          }),
        );
      },
    },
    xAxis: {
      type: 'value',
      min: 'dataMin',
      max: 'dataMax',
      ...axisStyle(input),
      splitLine: { show: false },
      axisLabel: {
        color: theme.muted,
        hideOverlap: true,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: span < 1 ? (value: number) => formatMs(value * 1e3) : secondsLabel(span),
      },
      ...axisName(since, 26),
    },
    yAxis: {
      type: 'value',
      min: 0,
      ...axisStyle(input),
      axisLabel: {
        color: theme.muted,
        formatter: (value: number) => (unit.axis ?? unit.text)(value * unit.bytes),
      },
    },
    series: [
      ...lines.map(({ name, color, points, stack, dashed }, index) => ({
        type: 'line' as const,
        name,
        showSymbol: false,
        ...(stack ? { stack: 'held', step: 'start' as const } : { sampling: 'lttb' as const }),
        lineStyle: {
          color,
          width: stack ? 1 : 1.75,
          type: dashed ? ('dashed' as const) : ('solid' as const),
        },
        itemStyle: { color },
        ...(stack || alone ? { areaStyle: { color, opacity: stack ? 0.75 : 0.12 } } : {}),
        z: stack ? 2 : 3,
        data: points.map(([t, bytes]) => [t, scaled(bytes)]),
        ...(index === 0
          ? {
              markArea: {
                silent: true,
                label: { show: true, position: 'top' as const, color: theme.muted, fontSize: 11 },
                data: phases.map((phase, nth): [object, object] => [
                  {
                    name: fits(phase.label, phase.end_s - phase.start_s) ? phase.label : '',
                    xAxis: phase.start_s,
                    itemStyle: { color: barColors.idle[tone], opacity: nth % 2 === 0 ? 0.22 : 0.1 },
                  },
                  { xAxis: phase.end_s },
                ]),
              },
            }
          : {}),
      })),
      {
        type: 'scatter',
        name: 'reported points',
        symbolSize: 11,
        z: 4,
        tooltip: { show: false },
        data: marks.map((mark) => ({
          value: [mark.t_s, scaled(mark.bytes)],
          itemStyle: {
            color: pointColors[mark.point],
            borderColor: theme.surface,
            borderWidth: 2,
            opacity: 1,
          },
          label: {
            show: true,
            ...labelPlace[mark.point],
            // At the right edge a centred label would be cut.
            ...((mark.t_s - first) / span > 0.9 && mark.point !== 'baseline'
              ? { align: 'right' as const, offset: [8, 0] as [number, number] }
              : {}),
            color: theme.ink,
            backgroundColor: theme.surface,
            padding: [1, 3],
            borderRadius: 2,
            formatter: isNarrow(input.width)
              ? pointLabels[mark.point]
              : `${pointLabels[mark.point]} ${unit.text(mark.bytes)}`,
          },
        })),
      },
    ],
  };
}
