import type { BenchPointResult, BenchResult, BenchVariant } from '../../../model/documents/bench.js';
import { formatCount, nbsp } from '../../format.js';
import type { Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { type Line, linesOption, type LineValue, markOf, withIntervals } from '../lines.js';

/** Points of one variant that differ in batch only. */
export interface BatchLine {
  name: string;
  variant: BenchVariant;
  /** By batch size. */
  points: BenchPointResult[];
}

export const lengthWords = ({ input_len, output_len }: { input_len: number; output_len: number }): string =>
  `${formatCount(input_len)}${nbsp}in${nbsp}+${nbsp}${formatCount(output_len)}${nbsp}out`;

/** What the batch sweep measured, a line a variant and pair of lengths. */
export function batchLines({ variants }: BenchResult): BatchLine[] {
  const lines = variants.flatMap((variant) => {
    const swept = variant.points.filter(({ parts }) => parts.includes('throughput'));
    const lengths = [...new Set(swept.map(lengthWords))];
    return lengths.map((words) => ({
      variant,
      words,
      points: swept
        .filter((point) => lengthWords(point) === words)
        .toSorted((a, b) => a.batch_size - b.batch_size),
    }));
  });
  const several = new Set(lines.map(({ words }) => words)).size > 1;
  return lines.map(({ variant, words, points }) => ({
    variant,
    points,
    name: several ? (variants.length > 1 ? `${variant.label}, ${words}` : words) : variant.label,
  }));
}

export function batchSizes(lines: readonly BatchLine[]): number[] {
  return [...new Set(lines.flatMap(({ points }) => points.map((point) => point.batch_size)))].toSorted(
    (a, b) => a - b,
  );
}

/** The batch from which a larger one costs latency; null where the analysis found none. */
export function kneeOf({ answers }: BenchVariant): number | null {
  const figures = answers.find(({ id }) => id === 'batch_knee')?.figures ?? {};
  return figures['knee_batch']?.value ?? null;
}

/** What a chart over batches shows of a point. */
export const batchValues = {
  output_tokens_per_s: {
    unit: 'tok/s',
    of: ({ throughput }: BenchPointResult): LineValue | null => {
      const { output_tokens_per_s: rate } = throughput;
      return rate.value === null ? null : { value: rate.value, ci95: rate.ci95 ?? null };
    },
  },
  tpot_ms: {
    unit: 'ms',
    of: ({ latency }: BenchPointResult): LineValue | null =>
      'value' in latency.tpot_ms ? null : { value: latency.tpot_ms.mean, ci95: latency.tpot_ms.ci95 },
  },
} as const;
export type BatchValue = keyof typeof batchValues;

/** Output tokens/s if every sequence of a larger batch were free: dashed, from the smallest batch. */
function idealLine(line: Line, sizes: number[], theme: Theme): Line[] {
  const from = line.values.findIndex((one) => one !== null);
  const first = line.values[from]?.value;
  const base = sizes[from];
  if (first === undefined || base === undefined || sizes.length < 2) return [];
  return [
    {
      ...markOf(0),
      name: 'proportional to the batch',
      color: theme.muted,
      quiet: true,
      values: sizes.map((size) => ({ value: (first * size) / base })),
    },
  ];
}

/** Knees and limits found, one mark a batch size; whose it is only where the lines differ. */
function marksOf(found: readonly BatchLine[], sizes: number[], theme: Theme) {
  const said = found.flatMap(({ name, variant, points }) => {
    const limit = points.find(({ outcome }) => outcome === 'out_of_memory');
    return [
      { size: kneeOf(variant), what: 'knee', name },
      { size: limit?.batch_size ?? null, what: 'out of memory', name },
    ];
  });
  return sizes.flatMap((size, at) => {
    const words = ['knee', 'out of memory'].flatMap((what) => {
      const whose = said.filter((one) => one.size === size && one.what === what).map(({ name }) => name);
      if (whose.length === 0) return [];
      return [whose.length === found.length ? what : `${what}: ${whose.join(', ')}`];
    });
    return words.length > 0 ? [{ at, name: words.join('\n'), color: theme.ink }] : [];
  });
}

/** Part `output_tokens_per_s` or `tpot_ms` against the batch size. */
export const benchBatchChart: Chart<BenchResult> = {
  height: () => 300,
  build: (input) => {
    const part: BatchValue = input.part === 'tpot_ms' ? 'tpot_ms' : 'output_tokens_per_s';
    const { unit, of } = batchValues[part];
    const found = batchLines(input.result);
    const sizes = batchSizes(found);
    const lines = found.map(({ name, points }, index): Line => ({
      ...markOf(index),
      name,
      values: sizes.map((size) => {
        const point = points.find(({ batch_size }) => batch_size === size);
        return point ? of(point) : null;
      }),
    }));
    const highest = Math.max(...lines.flatMap(({ values }) => values.map((one) => one?.value ?? 0)), 0);
    return linesOption(input, {
      categories: sizes.map(formatCount),
      xName: 'batch size',
      unit,
      lines: [
        ...lines,
        ...(part === 'output_tokens_per_s' && lines[0] ? idealLine(lines[0], sizes, input.theme) : []),
      ],
      marks: marksOf(found, sizes, input.theme),
      most: withIntervals(highest, lines) * 1.1,
    });
  },
};
