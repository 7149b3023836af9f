import type {
  BenchDistribution,
  BenchFit,
  BenchPointResult,
  BenchResult,
  BenchSpread,
  BenchVariant,
} from '../model/documents/bench.js';
import { figure, type Figure } from '../model/figure.js';
import { fitLabels, lengthLabel } from '../vocabulary/bench.js';
import { lineMark } from '../vocabulary/colors.js';
import { formatCount } from '../vocabulary/format.js';
import type { LinesChart, Point } from './chart.js';

// Values that both charts and tables of a benchmark show.

/** Metrics that variants and repeats are compared by, in display order. */
export const timedMetrics = ['ttft_ms', 'tpot_ms', 'e2e_ms'] as const;
export type TimedMetric = (typeof timedMetrics)[number];

/** The mean of a distribution as a figure. */
export function meanOf(spread: BenchDistribution): Figure {
  if ('value' in spread) return spread;
  const { mean, unit, source, n, sd, ci95 } = spread;
  return figure(mean, unit, source, { n, ...(sd === null ? {} : { sd }), ...(ci95 ? { ci95 } : {}) });
}

/** Points of one variant that differ only in batch size. */
interface BatchLine {
  name: string;
  variant: BenchVariant;
  /** By batch size. */
  points: BenchPointResult[];
}

/** The batch sweep: one line per variant and pair of lengths. */
export function batchLines({ variants }: BenchResult): BatchLine[] {
  const lines = variants.flatMap((variant) => {
    const swept = variant.points.filter(({ parts }) => parts.includes('throughput'));
    const lengths = [...new Set(swept.map(lengthLabel))];
    return lengths.map((length) => ({
      variant,
      length,
      points: swept
        .filter((point) => lengthLabel(point) === length)
        .toSorted((a, b) => a.batch_size - b.batch_size),
    }));
  });
  const several = new Set(lines.map(({ length }) => length)).size > 1;
  return lines.map(({ variant, length, points }) => ({
    variant,
    points,
    name: several ? (variants.length > 1 ? `${variant.label}, ${length}` : length) : variant.label,
  }));
}

export function batchSizes(lines: readonly BatchLine[]): number[] {
  return [...new Set(lines.flatMap(({ points }) => points.map((point) => point.batch_size)))].toSorted(
    (a, b) => a - b,
  );
}

/** The largest batch size before a doubling gains little throughput; null if the analysis found none. */
export function kneeOf({ answers }: BenchVariant): number | null {
  const figures = answers.find(({ id }) => id === 'batch_knee')?.figures ?? {};
  return figures['knee_batch']?.value ?? null;
}

/** A figure over the batch size, one line per variant and pair of lengths. */
export function batchChart(
  lines: readonly BatchLine[],
  unit: string,
  figureOf: (point: BenchPointResult) => Figure,
  max?: number,
): LinesChart {
  const sizes = batchSizes(lines);
  return {
    form: 'lines',
    x: { name: 'batch size', categories: sizes.map(formatCount) },
    panels: [
      {
        unit,
        ...(max !== undefined && { max }),
        series: lines.map(({ name, points }, index) => ({
          name,
          ...lineMark(index),
          points: sizes.map((size, position): Point => {
            const point = points.find(({ batch_size }) => batch_size === size);
            const shownFigure = point && figureOf(point);
            return shownFigure && shownFigure.value !== null
              ? [position, shownFigure.value, { ci95: shownFigure.ci95 ?? null, notes: [shownFigure.source] }]
              : [position, null];
          }),
        })),
      },
    ],
  };
}

/** Machine metrics by batch size. */
export const machineValues = {
  gpu_utilization: {
    name: 'GPU utilization',
    unit: '%',
    max: 100,
    figureOf: (point: BenchPointResult): Figure => point.machine.gpu_utilization_percent,
  },
  decode_idle: {
    name: 'idle per decode step',
    unit: 'ratio',
    max: 1,
    figureOf: (point: BenchPointResult): Figure => point.device_work.decode_idle_share,
  },
  memory: {
    name: 'memory',
    unit: 'B',
    max: undefined,
    figureOf: ({ machine }: BenchPointResult): Figure =>
      machine.memory_bytes.value === null ? machine.gpu_memory_used_bytes : machine.memory_bytes,
  },
  cpu_cores: {
    name: 'CPU cores busy',
    unit: '',
    max: undefined,
    figureOf: (point: BenchPointResult): Figure => point.machine.cpu_cores_busy,
  },
  power: {
    name: 'power',
    unit: 'W',
    max: undefined,
    figureOf: (point: BenchPointResult): Figure => point.machine.power_w,
  },
} as const;
type MachineValue = keyof typeof machineValues;

/** Machine metrics that any point of the batch sweep has. */
export function knownMachineValues(result: BenchResult): MachineValue[] {
  const points = batchLines(result).flatMap((line) => line.points);
  return (Object.keys(machineValues) as MachineValue[]).filter((name) =>
    points.some((point) => machineValues[name].figureOf(point).value !== null),
  );
}

export const fitIds = Object.keys(fitLabels) as BenchFit['id'][];

export const fitsOf = ({ variants }: BenchResult, id: string): { label: string; fit: BenchFit }[] =>
  variants.flatMap(({ label, fits }) => fits.filter((fit) => fit.id === id).map((fit) => ({ label, fit })));

interface ComparedPoint {
  /** The point's id. */
  name: string;
  /** Mean, ms; null if the variant did not measure the point. */
  values: (number | null)[];
}

/** Points measured by the first variant and another one, with every variant's mean. */
export function comparedPoints({ variants }: BenchResult, metric: TimedMetric): ComparedPoint[] {
  return (variants[0]?.points ?? []).flatMap(({ point: name }) => {
    const values = variants.map(({ points }) => {
      const spread = points.find(({ point }) => point === name)?.latency[metric];
      return !spread || 'value' in spread ? null : spread.mean;
    });
    return values[0] !== null && values.slice(1).some((value) => value !== null) ? [{ name, values }] : [];
  });
}

/** Quartiles of the values, and Tukey's fences around them. */
export interface Box {
  q1: number;
  median: number;
  q3: number;
  low: number;
  high: number;
}

/** Linear interpolation between order statistics (type 7). */
export function boxOf(values: readonly number[]): Box | null {
  if (values.length < 4) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const quantile = (share: number): number => {
    const position = (sorted.length - 1) * share;
    const low = sorted[Math.floor(position)] ?? 0;
    return low + ((sorted[Math.ceil(position)] ?? low) - low) * (position % 1);
  };
  const [q1, q3] = [quantile(0.25), quantile(0.75)];
  const reach = 1.5 * (q3 - q1);
  return { q1, median: quantile(0.5), q3, low: q1 - reach, high: q3 + reach };
}

export interface SpreadRow {
  name: string;
  variant: number;
  spread: BenchSpread;
  repeats: { launch: number; value: number; outlier: boolean }[];
  box: Box | null;
}

function spreadRow(
  point: BenchPointResult,
  variant: number,
  label: string | null,
  metric: TimedMetric,
): SpreadRow[] {
  const spread = point.latency[metric];
  if ('value' in spread) return [];
  const timedRepeats = (point.repeats ?? []).flatMap((repeat) => {
    const value = repeat[metric];
    return value === null ? [] : [{ launch: repeat.launch, value }];
  });
  const box = boxOf(timedRepeats.map(({ value }) => value));
  const repeats = timedRepeats.map((sample) => ({
    ...sample,
    outlier: box !== null && (sample.value < box.low || sample.value > box.high),
  }));
  const name = label === null ? point.point : `${point.point} · ${label}`;
  return [{ name, variant, spread, repeats, box }];
}

/** One row per point and variant with this distribution. */
export function spreadRows({ variants }: BenchResult, metric: TimedMetric): SpreadRow[] {
  const points = variants[0]?.points ?? [];
  const names = [
    ...new Set([...points, ...variants.flatMap((variant) => variant.points)].map(({ point }) => point)),
  ];
  return names.flatMap((name) =>
    variants.flatMap(({ label, points: variantPoints }, index) => {
      const point = variantPoints.find((candidate) => candidate.point === name);
      return point ? spreadRow(point, index, variants.length > 1 ? label : null, metric) : [];
    }),
  );
}
