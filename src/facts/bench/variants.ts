import type { BenchAnswer, BenchPointResult, BenchVariant } from '../../model/documents/bench.js';
import { figure, type Figure } from '../../model/figure.js';
import {
  logMeanOf,
  permutationP,
  ratioTest,
  type RatioTest,
  realDifferences,
} from '../difference/ratio-test.js';
import { referencePoint, independentValues, type TimedRepeat } from './sweeps.js';
import { pointWords } from './words.js';
import { formatFactor, formatNumber } from '../../vocabulary/format.js';
import { joinWithAnd } from '../../vocabulary/sentence.js';

const comparedMetrics: {
  name: string;
  key: string;
  read: (repeat: TimedRepeat, point: BenchPointResult) => number | null;
}[] = [
  { name: 'TTFT', key: 'ttft_ms', read: ({ ttft_ms }) => ttft_ms },
  { name: 'TPOT', key: 'tpot_ms', read: ({ tpot_ms }) => tpot_ms },
  {
    name: 'output tokens/s',
    key: 'output_tokens_per_s',
    read: ({ e2e_ms }, { batch_size, output_len }) => (1e3 * batch_size * output_len) / e2e_ms,
  },
];

interface Comparison {
  name: string;
  key: string;
  point: BenchPointResult;
  test: RatioTest;
  real: boolean;
}

/** Compares each variant with the first, at all common points. */
export function variantAnswers(variants: readonly BenchVariant[]): BenchAnswer[] {
  const [base, ...variantsToCompare] = variants;
  return base ? variantsToCompare.map((other) => compareVariants(base, other)) : [];
}

function compareVariants(base: BenchVariant, other: BenchVariant): BenchAnswer {
  const question = `${other.label} against ${base.label}`;
  const pairs = base.points.flatMap((from): [BenchPointResult, BenchPointResult][] => {
    const to = other.points.find(({ point, outcome }) => point === from.point && outcome === 'measured');
    return to && from.outcome === 'measured' ? [[from, to]] : [];
  });
  const figures: Record<string, Figure> = {};
  const notEnough = (why: string): BenchAnswer => ({
    id: 'variants',
    question,
    answer: `Not enough data: ${why}.`,
    figures,
  });
  if (pairs.length === 0) return notEnough('no point was measured with both');
  if (base.launches < 2 || other.launches < 2) {
    return notEnough('at least two launches of each are needed to test a difference (--launches)');
  }
  const tests = comparedMetrics.flatMap(({ name, key, read }) =>
    pairs.flatMap(([from, to]) => {
      const [before, after] = [from, to].map((point) =>
        independentValues(point, (repeat) => read(repeat, point)),
      );
      const [fromMean, toMean] = [logMeanOf(before!), logMeanOf(after!)];
      if (!fromMean || !toMean) return [];
      return [
        {
          name,
          key,
          point: from,
          test: ratioTest(fromMean, toMean),
          permutation: permutationP(before!, after!),
        },
      ];
    }),
  );
  const verdicts = realDifferences(tests.map(({ test: { p }, permutation }) => ({ p, permutation })));
  const results = tests.map((test, i): Comparison => ({ ...test, real: verdicts[i]!.real }));
  for (const { key, point, test } of results) {
    figures[`${key}_${point.point}`] = figure(test.ratio, 'ratio', `${other.label} / ${base.label}`, {
      ci95: test.ci95,
    });
  }
  const reference = referencePoint(pairs.map(([from]) => from))!;
  const atReference = results.filter(({ point }) => point === reference);
  const first = `${question}, at ${pointWords(reference)}: ${joinWithAnd(atReference.map((result) => comparisonWords(result, results.length)))}.`;
  const elsewhere = results.filter(({ point }) => point !== reference);
  return {
    id: 'variants',
    question,
    answer: [first, otherPointsText(elsewhere)].filter(Boolean).join(' '),
    figures,
  };
}

function comparisonWords({ name, test, real }: Comparison, all: number): string {
  const interval = `${formatNumber(test.ci95[0])} to ${formatFactor(test.ci95[1])}`;
  const ratio = formatFactor(test.ratio);
  if (real) return `${name} ${ratio} (95 % ${interval})`;
  if (test.ci95[0] <= 1 && test.ci95[1] >= 1) return `${name} not significant (${ratio}, 95 % ${interval})`;
  // Significant alone, but not after correction for multiple comparisons.
  return `${name} ${ratio} (95 % ${interval} alone; too few launches for significance among ${all} comparisons)`;
}

/** The other points, one line per metric: range of the ratios, and how many are significant. */
function otherPointsText(others: readonly Comparison[]): string {
  const parts = comparedMetrics.flatMap(({ name }) => {
    const metricResults = others.filter((result) => result.name === name);
    if (metricResults.length === 0) return [];
    const ratios = metricResults.map(({ test }) => test.ratio).toSorted((x, y) => x - y);
    const [low, high] = [formatFactor(ratios[0]!), formatFactor(ratios.at(-1)!)];
    const real = metricResults.filter((result) => result.real).length;
    return [
      `${name} ${low === high ? low : `${low} to ${high}`} (${real} of ${metricResults.length} significant)`,
    ];
  });
  return parts.length === 0 ? '' : `At the other points ${joinWithAnd(parts)}.`;
}
