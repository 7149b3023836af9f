import type { BenchPointResult, BenchResult } from '../../../model/documents/bench.js';
import { type BatchLine, batchLines, batchSizes, kneeOf, lineNames } from '../../../views/bench-series.js';
import { formatCount } from '../../../vocabulary/format.js';
import type { Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { type Line, lineKey, linesOption, type LineValue, markOf, withIntervals } from '../lines.js';

/** What a chart over batches shows of a point. */
const batchValues = {
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
type BatchValue = keyof typeof batchValues;

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
  key: (result) => lineKey(lineNames(result)),
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
