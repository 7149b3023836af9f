import type { BenchAnswer, BenchFit, BenchPointResult } from '../../model/documents/bench.js';
import { figure, type Figure } from '../../model/figure.js';
import { poorFit, trendOf } from './fits.js';
import { perDoubling, sweepOver } from './sweeps.js';
import { asClause } from './words.js';
import {
  formatCount,
  formatFactor,
  formatMs,
  formatPercent,
  formatQuantity,
} from '../../vocabulary/format.js';
import { capitalize, joinWithAnd } from '../../vocabulary/sentence.js';

/** A batch is past the knee if doubling it gives less than this factor. */
const kneeGain = 1.5;

interface Rate {
  point: BenchPointResult;
  batch: number;
  /** Decode tokens/s; null with one output token. */
  decode: number | null;
  output: number;
}

/** Where batching pays off: the knee, scaling, and the effect on utilization. */
export function batchAnswers(points: readonly BenchPointResult[], fits: readonly BenchFit[]): BenchAnswer[] {
  const rates = (sweepOver(points, 'batch_size') ?? []).flatMap((point): Rate[] => {
    const { output_tokens_per_s: output, decode_tokens_per_s: decode } = point.throughput;
    if (!output.value) return [];
    return [{ point, batch: point.batch_size, output: output.value, decode: decode.value }];
  });
  if (rates.length < 2) {
    if (!points.some(({ parts }) => parts.includes('throughput'))) return [];
    const answer = 'Not enough data: fewer than two batch sizes were measured.';
    return [{ id: 'batch_knee', question: kneeQuestion, answer, figures: {} }];
  }
  return [kneeAnswer(rates, fits), scalingAnswer(rates), utilizationAnswer(rates)];
}

const kneeQuestion = 'Up to which batch size does batching pay off?';

function kneeAnswer(rates: readonly Rate[], fits: readonly BenchFit[]): BenchAnswer {
  const hasDecode = rates.every(({ decode }) => decode !== null);
  const rateName = hasDecode ? 'decode tokens/s' : 'output tokens/s';
  const rateOf = ({ decode, output }: Rate) => (hasDecode ? decode! : output);
  const steps = rates.slice(1).map((to, i) => {
    const from = rates[i]!;
    const growth = (valueOf: (rate: Rate) => number) =>
      perDoubling(valueOf(to) / valueOf(from), from.batch, to.batch);
    return { from, to, gain: growth(rateOf), outputGain: growth(({ output }) => output) };
  });
  const figures: Record<string, Figure> = {};
  for (const { from, to, gain } of steps) {
    figures[`gain_${from.batch}_${to.batch}`] = figure(
      gain,
      'ratio',
      `${rateName}, for each doubling of the batch`,
    );
  }
  const knee = steps.find(({ gain }) => gain < kneeGain);
  const last = rates.at(-1)!;
  const sentences = [
    knee
      ? `Batching does not pay off beyond batch ${knee.from.batch}: from ${knee.from.batch} to ${knee.to.batch} each doubling gives ${formatFactor(knee.gain)} the ${rateName} (${formatQuantity(rateOf(knee.from), 'tok/s')} → ${formatQuantity(rateOf(knee.to), 'tok/s')}), less than ${formatFactor(kneeGain)}.`
      : `No knee up to batch ${last.batch}, the largest measured: every doubling gave at least ${formatFactor(Math.min(...steps.map(({ gain }) => gain)))} the ${rateName}.`,
  ];
  if (knee)
    figures['knee_batch'] = figure(
      knee.from.batch,
      'sequences',
      `largest batch before a doubling gives less than ${formatFactor(kneeGain)}`,
    );
  const worst = steps.reduce((x, y) => (y.outputGain < x.outputGain ? y : x));
  if (!knee && hasDecode && worst.outputGain < kneeGain) {
    sentences.push(
      `Output tokens/s, which include the prefill, gain less: ${formatFactor(worst.outputGain)} per doubling from ${worst.from.batch} to ${worst.to.batch}.`,
    );
  }
  const tpot = fits.find(({ id }) => id === 'batch_tpot');
  const [fixed = 0, perSequence = 0] = tpot?.coefficients ?? [];
  if (tpot && tpot.rms_error > poorFit) {
    sentences.push(`The fit of TPOT is too poor for details (error ${formatPercent(tpot.rms_error)}).`);
  } else if (tpot && trendOf(tpot) !== 'up') {
    sentences.push(
      `From the fit (error ${formatPercent(tpot.rms_error)}): TPOT does not measurably grow with the batch.`,
    );
  } else if (tpot && fixed > 0 && perSequence > 0) {
    const crossover = fixed / perSequence;
    figures['crossover_batch'] = figure(crossover, 'sequences', 'fit: TPOT = a + c·batch, a / c');
    const rangeNote = crossover > 2 * last.batch ? ', far beyond the measured range' : '';
    const where =
      crossover > 10 * last.batch
        ? 'far beyond the measured range'
        : `at batch ${formatCount(crossover)}${rangeNote}`;
    sentences.push(
      `From the fit (error ${formatPercent(tpot.rms_error)}): a decode step takes ${formatMs(fixed)} plus ${formatMs(perSequence)} per sequence; the sequences take as long as the fixed part ${where}.`,
    );
  }
  return { id: 'batch_knee', question: kneeQuestion, answer: sentences.join(' '), figures };
}

/** Factors only: the knee's answer states where scaling slows. */
function scalingAnswer(rates: readonly Rate[]): BenchAnswer {
  const [first] = rates as [Rate, ...Rate[]];
  const figures: Record<string, Figure> = {};
  const parts = rates.slice(1).map(({ batch, output }) => {
    const factor = output / first.output;
    const efficiency = factor / (batch / first.batch);
    figures[`scaling_factor_${batch}`] = figure(
      factor,
      'ratio',
      `output tokens/s at batch ${batch} / at batch ${first.batch}`,
    );
    figures[`scaling_efficiency_${batch}`] = figure(
      efficiency,
      'ratio',
      `scaling factor / (${batch} / ${first.batch})`,
    );
    return `${formatFactor(factor)} at batch ${batch} (${formatPercent(efficiency)} of ideal)`;
  });
  return {
    id: 'scaling',
    question: 'How does throughput scale with the batch?',
    answer: `Output tokens/s relative to batch ${first.batch} (${formatQuantity(first.output, 'tok/s')}): ${joinWithAnd(parts)}.`,
    figures,
  };
}

/** Utilization measures known at both ends of the sweep, the device's own first. */
function utilizationAnswer(rates: readonly Rate[]): BenchAnswer {
  const question = 'Did batching raise utilization?';
  const [first, last] = [rates[0]!, rates.at(-1)!];
  const figures: Record<string, Figure> = {};
  const measures: [name: string, of: (point: BenchPointResult) => Figure, unit: number][] = [
    ['GPU utilization', ({ machine }) => machine.gpu_utilization_percent, 100],
    ['decode MFU', ({ model_utilization }) => model_utilization.decode_mfu, 1],
    ['decode MBU', ({ model_utilization }) => model_utilization.decode_mbu, 1],
  ];
  const raised: boolean[] = [];
  const parts = measures.flatMap(([name, measure, unit]) => {
    const [from, to] = [measure(first.point), measure(last.point)];
    if (from.value === null || to.value === null) return [];
    const key = name.toLowerCase().replaceAll(' ', '_');
    figures[`${key}_batch_${first.batch}`] = from;
    figures[`${key}_batch_${last.batch}`] = to;
    // Differences under 5 % are sampling noise.
    raised.push(to.value > 1.05 * from.value);
    return [`${name} ${formatPercent(from.value / unit)} → ${formatPercent(to.value / unit)}`];
  });
  if (parts.length === 0) {
    const reasons = measures.flatMap(([name, measure]) => {
      const unknown = [measure(first.point), measure(last.point)].find(({ value }) => value === null);
      return unknown?.value === null ? [{ name, why: asClause(unknown.reason.text) }] : [];
    });
    const whys = [...new Set(reasons.map(({ why }) => why))].map((why) => {
      const names = reasons.filter((reason) => reason.why === why).map(({ name }) => name);
      return `${joinWithAnd(names)}: ${why}`;
    });
    return {
      id: 'utilization',
      question,
      answer: `Not enough data. ${whys.map(capitalize).join('. ')}.`,
      figures,
    };
  }
  const verdict = raised.every(Boolean)
    ? 'Yes, utilization rises'
    : raised.some(Boolean)
      ? 'In part: some of the utilization rises'
      : 'No, utilization does not rise';
  return {
    id: 'utilization',
    question,
    answer: `${verdict} from batch ${first.batch} to ${last.batch}: ${joinWithAnd(parts)}; tokens/s ${formatFactor(last.output / first.output)}.`,
    figures,
  };
}
