import { formatBytes, formatNumber, nbsp } from '../format.js';
import { memoryPointNames } from '../names.js';
import { barColors, classColors } from '../palette.js';
import { axisName, axisStyle, base, grid, isNarrow, secondsLabel, tip, type Chart } from './chart.js';

const pointColors = {
  baseline: classColors.norm,
  post_warmup: classColors.attention,
  peak: classColors.sampling,
} as const;

/** The curve rises from the first point and runs level through the others. */
const labelPlace: Record<
  keyof typeof pointColors,
  { position: 'top' | 'bottom'; align?: 'left'; offset?: [number, number] }
> = {
  baseline: { position: 'bottom', align: 'left', offset: [-6, 0] },
  post_warmup: { position: 'bottom' },
  peak: { position: 'top' },
};

/** Resident memory over the session, what ran when behind it, the three reported points on it. */
export const memoryChart: Chart = {
  height: () => 300,
  build: (input) => {
    const { memory } = input.result;
    if (!memory) return base(input);
    const { theme } = input;
    const tone = theme.dark ? 'dark' : 'light';
    const first = memory.series[0]?.t_ms ?? 0;
    const span = (memory.series.at(-1)?.t_ms ?? 0) - first;
    /** Pixels that a phase's name has; one that does not fit is left to the table. */
    const fits = (label: string, ms: number): boolean => label.length * 6 < (ms / span) * (input.width - 90);
    const mib = (bytes: number): number => bytes / 2 ** 20;
    return {
      ...base(input),
      grid: grid({ top: 36, right: 24, bottom: 12 }),
      tooltip: {
        ...base(input).tooltip,
        trigger: 'axis',
        formatter: (params) => {
          const [first] = params as unknown as { value: [number, number] }[];
          if (!first) return '';
          return tip(`${formatNumber(first.value[0])}${nbsp}s`, formatBytes(first.value[1] * 2 ** 20));
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
          formatter: secondsLabel(span / 1e3),
        },
        ...axisName('since the session began', 26),
      },
      yAxis: {
        type: 'value',
        min: 0,
        ...axisStyle(input),
        axisLabel: { color: theme.muted, formatter: (value: number) => formatBytes(value * 2 ** 20) },
      },
      series: [
        {
          type: 'line',
          name: 'resident memory',
          showSymbol: false,
          sampling: 'lttb',
          lineStyle: { color: classColors.gemm, width: 1.75 },
          itemStyle: { color: classColors.gemm },
          areaStyle: { color: classColors.gemm, opacity: 0.12 },
          data: memory.series.map(({ t_ms, bytes }) => [t_ms / 1e3, mib(bytes)]),
          markArea: {
            silent: true,
            label: {
              show: true,
              position: 'top',
              color: theme.muted,
              fontSize: 11,
            },
            data: memory.phases.map((phase, index) => [
              {
                name: fits(phase.label, phase.end_ms - phase.start_ms) ? phase.label : '',
                xAxis: phase.start_ms / 1e3,
                itemStyle: { color: barColors.idle[tone], opacity: index % 2 === 0 ? 0.22 : 0.1 },
              },
              { xAxis: phase.end_ms / 1e3 },
            ]),
          },
        },
        {
          type: 'scatter',
          name: 'reported points',
          symbolSize: 11,
          z: 4,
          data: memory.marks.map((mark) => ({
            value: [mark.t_ms / 1e3, mib(mark.bytes)],
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
              ...((mark.t_ms - first) / span > 0.9 && mark.point !== 'baseline'
                ? { align: 'right' as const, offset: [8, 0] as [number, number] }
                : {}),
              color: theme.ink,
              backgroundColor: theme.surface,
              padding: [1, 3],
              borderRadius: 2,
              formatter: isNarrow(input.width)
                ? memoryPointNames[mark.point]
                : `${memoryPointNames[mark.point]} ${formatBytes(mark.bytes)}`,
            },
          })),
        },
      ],
    };
  },
};
