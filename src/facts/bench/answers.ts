import type { BenchAnswer, BenchFit, BenchPointResult, BenchVariant } from '../../model/documents/bench.js';
import { figure, type Figure } from '../../model/figure.js';
import { batchAnswers } from './batch-answers.js';
import { meanOf } from './point.js';
import { poorFit, trendOf, valueAt } from './fits.js';
import { perDoubling, referencePoint, type Size, sweepOver } from './sweeps.js';
import { pointWords, asClause } from './words.js';
import {
  formatCount,
  formatFactor,
  formatFigureWithInterval,
  formatMs,
  formatNumber,
  formatPercent,
} from '../../vocabulary/format.js';
import { capitalize, joinWithAnd } from '../../vocabulary/sentence.js';

type Points = readonly BenchPointResult[];

/** Answers to the questions of a benchmark, with numbers; states what was not measured. */
export function benchAnswers(points: Points, fits: readonly BenchFit[]): BenchVariant['answers'] {
  const reference = referencePoint(points);
  if (!reference) return [];
  return [
    latencyAnswer(reference),
    ...batchAnswers(points, fits),
    promptAnswer(points, fits),
    outputAnswer(points, fits),
    regimesAnswer(reference),
    idleAnswer(points, reference),
    boundAnswer(points, reference),
  ].filter((answer) => answer !== null);
}

/** Whether any point was measured for a question; otherwise the question is left out. */
const isMeasured = (points: Points, part: BenchPointResult['parts'][number]): boolean =>
  points.some(({ parts }) => parts.includes(part));

function latencyAnswer(point: BenchPointResult): BenchAnswer {
  const { latency, throughput, expected } = point;
  const figures: Record<string, Figure> = { output_tokens_per_s: throughput.output_tokens_per_s };
  const parts: string[] = [];
  for (const [name, words] of [
    ['ttft_ms', 'TTFT'],
    ['tpot_ms', 'TPOT'],
    ['e2e_ms', 'end to end'],
  ] as const) {
    const spread = latency[name];
    if (!('p50' in spread)) continue;
    figures[name] = meanOf(spread);
    parts.push(`${words} ${formatFigureWithInterval(figures[name])}`);
  }
  const { output_tokens_per_s: rate } = throughput;
  const range = [
    rangeWords('TTFT', latency.ttft_ms, expected.ttft),
    rangeWords('TPOT', latency.tpot_ms, expected.tpot),
  ].filter((words) => words !== null);
  return {
    id: 'latency',
    question: 'How long does one request take?',
    answer: `At ${pointWords(point)}: ${[...parts, ...(rate.value === null ? [] : [formatFigureWithInterval(rate)])].join(', ')}.${range.length > 0 ? ` ${range.join(' ')}` : ''}`,
    figures,
  };
}

function rangeWords(
  name: string,
  spread: BenchPointResult['latency']['ttft_ms'],
  expected: BenchPointResult['expected']['ttft'],
): string | null {
  if (!('p50' in spread) || !('low' in expected)) return null;
  const { mean } = spread;
  const range = `${formatMs(expected.low)} to ${formatMs(expected.high)}`;
  if (mean < expected.low)
    return `${name} is below the ${range} predicted from the roofline: model, dtype or roofs do not match the run.`;
  if (mean > expected.high) {
    const above = `${name} is above the ${range} predicted from the roofline`;
    const reaches = spread.ci95 !== null && spread.ci95[0] <= expected.high;
    return reaches ? `${above}, but within its uncertainty.` : `${above}.`;
  }
  return `${name} is within the ${range} predicted from the roofline.`;
}

const notEnough = (id: BenchAnswer['id'], question: string, what: string): BenchAnswer => ({
  id,
  question,
  answer: `Not enough data: ${asClause(what)}.`,
  figures: {},
});

function promptAnswer(points: Points, fits: readonly BenchFit[]): BenchAnswer | null {
  return growthAnswer(points, fits, {
    id: 'prompt_cost',
    question: 'What does doubling the prompt cost?',
    size: 'input_len',
    spread: 'ttft_ms',
    name: 'TTFT',
    unitName: 'prompt tokens',
  });
}

function outputAnswer(points: Points, fits: readonly BenchFit[]): BenchAnswer | null {
  return growthAnswer(points, fits, {
    id: 'output_cost',
    question: 'What does doubling the output cost?',
    size: 'output_len',
    spread: 'e2e_ms',
    name: 'end to end',
    unitName: 'output tokens',
  });
}

interface Growth {
  id: 'prompt_cost' | 'output_cost';
  question: string;
  size: Size;
  spread: 'ttft_ms' | 'e2e_ms';
  name: string;
  unitName: string;
}

/** Measured pairs first, scaled to one doubling; then the fit, which separates the fixed part from the cost per token. */
function growthAnswer(points: Points, fits: readonly BenchFit[], growth: Growth): BenchAnswer | null {
  const { id, question, size, spread, name, unitName } = growth;
  const sweep = (sweepOver(points, size) ?? []).flatMap((point) => {
    const distribution = point.latency[spread];
    return 'p50' in distribution ? [{ x: point[size], mean: distribution.mean, point }] : [];
  });
  if (sweep.length < 2) {
    return isMeasured(points, 'sequence')
      ? notEnough(id, question, `fewer than two numbers of ${unitName} were measured`)
      : null;
  }
  const figures: Record<string, Figure> = {};
  const pairs = sweep.slice(1).map((to, i) => {
    const from = sweep[i]!;
    const ratio = perDoubling(to.mean / from.mean, from.x, to.x);
    figures[`doubling_${from.x}_${to.x}`] = figure(
      ratio,
      'ratio',
      `(${name} at ${to.x} / at ${from.x}) ^ (1 / log2(${to.x} / ${from.x}))`,
    );
    return `${from.x} → ${to.x}: ${formatMs(from.mean)} → ${formatMs(to.mean)}${to.x === 2 * from.x ? ` (${formatFactor(ratio)})` : ` (${formatFactor(ratio)} per doubling)`}`;
  });
  const fixed = (['batch_size', 'input_len', 'output_len'] as const).filter(
    (dimension) => dimension !== size,
  );
  const shapes = fixed.map(
    (other) =>
      `${{ batch_size: 'batch', input_len: 'prompt', output_len: 'output' }[other]} ${sweep[0]!.point[other]}`,
  );
  const fit = fits.find((candidate) => candidate.id === (id === 'prompt_cost' ? 'prompt' : 'output'));
  return {
    id,
    question,
    answer: `${capitalize(name)} at ${shapes.join(', ')}: ${pairs.join('; ')}.${fit ? ` ${fitWords(fit, name, unitName, figures)}` : ''}`,
    figures,
  };
}

/** A fit's coefficients as costs, and the cost of doubling to the largest measured size. */
function fitWords(fit: BenchFit, name: string, unitName: string, figures: Record<string, Figure>): string {
  const { coefficients, coefficients_ci95, rms_error, points } = fit;
  if (rms_error > poorFit) return `The fit is too poor for details (error ${formatPercent(rms_error)}).`;
  const prefix = `From the fit (error ${formatPercent(rms_error)}):`;
  const trend = trendOf(fit);
  const [from, to] = [points[0]!, points.at(-1)!];
  if (trend === 'none') {
    return `${prefix} ${name} does not measurably depend on the ${unitName}, from ${formatCount(from.x)} to ${formatCount(to.x)}.`;
  }
  if (trend === 'down') {
    return `${prefix} ${name} does not grow with the ${unitName}: ${formatMs(from.fitted)} at ${formatCount(from.x)}, ${formatMs(to.fitted)} at ${formatCount(to.x)}.`;
  }
  const [fixed = 0, slope = 0, square = 0] = coefficients;
  const largest = points.at(-1)!.x;
  const [half, full] = [valueAt(coefficients, largest / 2), valueAt(coefficients, largest)];
  figures['fixed_ms'] = figure(fixed, 'ms', 'fit: coefficient 0');
  figures['per_token_ms'] = figure(slope + 2 * square * largest, 'ms', `fit: slope at ${largest}`);
  figures['doubling_by_fit'] = figure(full / half, 'ratio', `fit: at ${largest} / at ${largest / 2}`);
  const curve = square === 0 ? '' : `, growing with the length (AICc supports the quadratic term)`;
  const lowerBound = coefficients_ci95?.[0]?.[0] ?? fixed;
  const base = lowerBound > 0 ? `${formatMs(fixed)} is fixed` : 'no fixed part can be distinguished from 0';
  return `${prefix} ${base} and 100 more ${unitName} cost ${formatMs(100 * (slope + 2 * square * largest))}${square === 0 ? '' : ` at ${largest}`}${curve}; ${formatCount(largest / 2)} → ${largest} costs ${formatMs(full - half)} more, ${formatFactor(full / half)}.`;
}

function regimesAnswer(point: BenchPointResult): BenchAnswer {
  const { prefill_tokens_per_s: prefill, decode_tokens_per_s: decode } = point.throughput;
  const { prefill_bound, decode_bound } = point.model_utilization;
  const question = 'How fast are prefill and decode?';
  if (!prefill.value || !decode.value) {
    return notEnough('regimes', question, 'both need a timed repeat with two or more output tokens');
  }
  const bound = (limiter: string | null) => (limiter === null ? '' : ` (${limiter}-bound)`);
  return {
    id: 'regimes',
    question,
    answer: `At ${pointWords(point)}: prefill ${formatFigureWithInterval(prefill)}${bound(prefill_bound)}, decode ${formatFigureWithInterval(decode)}${bound(decode_bound)}: a prompt token takes ${formatNumber(decode.value / prefill.value, 2)} of the time of an output token.`,
    figures: { prefill_tokens_per_s: prefill, decode_tokens_per_s: decode },
  };
}

function idleAnswer(points: Points, reference: BenchPointResult): BenchAnswer {
  const question = 'Does the device wait between steps?';
  const sweep = sweepOver(points, 'batch_size') ?? [reference];
  const figures: Record<string, Figure> = {};
  const parts = sweep.flatMap((point) => {
    const { decode_idle_share: idle } = point.device_work;
    const period = 'p50' in point.latency.itl_ms ? point.latency.itl_ms : point.latency.tpot_ms;
    if (idle.value === null || !('p50' in period)) return [];
    figures[`idle_share_batch_${point.batch_size}`] = idle;
    figures[`idle_ms_batch_${point.batch_size}`] = figure(
      idle.value * period.mean,
      'ms',
      'idle share × decode step period',
    );
    return [
      `at batch ${point.batch_size} ${formatPercent(idle.value)} of a decode step (${formatMs(idle.value * period.mean)} of ${formatMs(period.mean)})`,
    ];
  });
  if (parts.length === 0) {
    const { decode_idle_share: idle } = reference.device_work;
    return notEnough('idle', question, idle.value === null ? idle.reason.text : 'no decode step was timed');
  }
  const shown = parts.length > 3 ? [parts[0]!, parts[Math.floor(parts.length / 2)]!, parts.at(-1)!] : parts;
  return { id: 'idle', question, answer: `The device is idle ${joinWithAnd(shown)}.`, figures };
}

function boundAnswer(points: Points, reference: BenchPointResult): BenchAnswer {
  const question = 'Compute- or memory-bound?';
  const sweep = sweepOver(points, 'batch_size') ?? [reference];
  const shown = sweep.length > 1 ? [sweep[0]!, sweep.at(-1)!] : sweep;
  const figures: Record<string, Figure> = {};
  const parts = shown.flatMap((point) =>
    (['prefill', 'decode'] as const).flatMap((stage) => {
      const bound = point.model_utilization[`${stage}_bound`];
      const [mfu, mbu] = [point.model_utilization[`${stage}_mfu`], point.model_utilization[`${stage}_mbu`]];
      if (bound === null || mfu.value === null || mbu.value === null) return [];
      figures[`${stage}_mfu_batch_${point.batch_size}`] = mfu;
      figures[`${stage}_mbu_batch_${point.batch_size}`] = mbu;
      const reachedShare =
        bound === 'compute' ? `MFU ${formatPercent(mfu.value)}` : `MBU ${formatPercent(mbu.value)}`;
      const farText =
        Math.max(mfu.value, mbu.value) < 0.3 ? ', far from either roof: the hardware does not limit it' : '';
      return [
        `${stage} at batch ${point.batch_size} is ${bound}-bound by its work (${reachedShare}${farText})`,
      ];
    }),
  );
  if (parts.length === 0) {
    const { decode_mbu: why } = reference.model_utilization;
    return notEnough('bound', question, why.value === null ? why.reason.text : 'no roofline is known');
  }
  const text = `${parts.join('; ')}.`;
  return { id: 'bound', question, answer: capitalize(text), figures };
}
