import type { LatencyResult, MemoryResult, ProfileResult } from '../model/documents/profile.js';
import type { MachineRoofline } from '../model/documents/roofline.js';
import { classColors } from '../vocabulary/colors.js';
import { pointColors, pointLabels } from '../vocabulary/memory-points.js';
import { classLabels } from '../vocabulary/op-classes.js';
import type { LinesChart, Panel, RooflineChart } from './chart.js';
import { linkTo, type Places, pointPlace } from './findings.js';
import { bandwidthRoofs, repeatLabels, type RooflinePoint, rooflinePoints } from './profile-series.js';

const pointName = ({ stage, class: name }: RooflinePoint): string =>
  name === null ? stage : `${classLabels[name]} in ${stage}`;

/** Stages and their classes under this machine's measured rooflines. Stage: diamond; class of prefill: triangle, of decode: circle. */
export const rooflineChart = (
  data: ProfileResult,
  roofline: MachineRoofline,
  places?: Places,
): RooflineChart => ({
  form: 'roofline',
  slopes: bandwidthRoofs(roofline).map(({ level, bytes_per_s, working_set_bytes: set }) => ({
    name: level,
    bytes_per_s,
    detail: [' at ', { n: set, unit: 'B' }],
  })),
  peaks: roofline.compute,
  ridge: roofline.ridge_flop_per_byte,
  points: rooflinePoints(data).map((point) => ({
    name: pointName(point),
    ...linkTo(places?.get(pointPlace(point.stage, point.class))),
    group: point.class === null ? null : classLabels[point.class],
    color: point.class === null ? 'ink' : classColors[point.class],
    symbol: point.class === null ? 'diamond' : point.stage === 'prefill' ? 'triangle' : 'circle',
    intensity: point.intensity,
    flops_per_s: point.flops_per_s,
    notes: [],
  })),
});

/** Resident memory over the session with its phases in the background and the three reported points. */
export const memoryChart = ({ series, phases, marks }: MemoryResult): LinesChart => ({
  form: 'lines',
  x: { name: 'since session start', unit: 's' },
  panels: [
    {
      unit: 'B',
      series: [
        {
          name: 'resident memory',
          color: classColors.gemm,
          points: series.map(({ t_ms, bytes }) => [t_ms / 1e3, bytes]),
        },
      ],
    },
  ],
  shades: phases.map(({ label, start_ms, end_ms }) => ({
    name: label,
    from: start_ms / 1e3,
    to: end_ms / 1e3,
  })),
  marks: marks.map(({ point, t_ms, bytes }) => ({
    x: t_ms / 1e3,
    y: bytes,
    name: pointLabels[point],
    color: pointColors[point],
  })),
});

/** Every timed repeat in run order, one panel per metric, with the mean and its 95 % interval in the background. */
export function repeatsChart(latency: LatencyResult): LinesChart {
  const { per_repeat: repeats } = latency;
  const panels = (
    [
      ['TTFT', 'ttft_ms'],
      ['TPOT', 'tpot_ms'],
      ['end to end', 'e2e_ms'],
    ] as const
  ).map(([title, metric]): Panel => {
    const mean = latency[metric];
    return {
      title,
      unit: 'ms',
      scaled: true,
      bounds: mean.value === null ? [] : [{ name: 'mean', value: mean.value, ci95: mean.ci95 ?? null }],
      series: [
        {
          name: '',
          color: classColors.gemm,
          symbol: 'circle',
          style: 'dots',
          points: repeats.map((repeat, index) => [index, repeat[metric], { outlier: repeat.outlier }]),
        },
      ],
    };
  });
  return {
    form: 'lines',
    x: { name: 'process launch.repeat', categories: repeatLabels(repeats) },
    panels: panels.filter(({ series: [only] }) => only?.points.some(([, y]) => y !== null)),
  };
}

/** Mean step period by step index: shows how decode slows as the context grows; p50 and p95 over all steps. */
export const stepsChart = ({
  decode_step_by_index_ms: steps,
  decode_step_percentiles_ms: percentiles,
}: LatencyResult): LinesChart => ({
  form: 'lines',
  small: true,
  x: { name: 'decode step', categories: steps.map((_, index) => String(index + 1)) },
  panels: [
    {
      unit: 'ms',
      scaled: true,
      bounds: percentiles
        ? [
            { name: 'p50', value: percentiles.p50 },
            { name: 'p95', value: percentiles.p95 },
          ]
        : [],
      series: [
        {
          name: 'mean over repeats',
          color: classColors.gemm,
          symbol: 'circle',
          points: steps.map((time, index) => [index, time]),
        },
      ],
    },
  ],
});
