import type { BenchResult } from '../../model/documents/bench.js';
import type { ExplainResult, StageWaterfall } from '../../model/documents/explain.js';
import { halfInterval } from '../../model/half-interval.js';
import { headlineTime, isProfiled } from '../../model/headline-time.js';
import type { Headline } from '../../session/headline.js';
import { leadStage } from './sentences.js';
import { formatFactor, formatFigure, formatQuantity } from '../../vocabulary/format.js';

/**
 * "decode 13.1 ms/step, up to 312 tok/s end to end at batch 8, 2.10× roofline": the time per instance of the leading stage, without
 * the profiler if known, and a benchmark's best output throughput. Null without a measured stage.
 */
export function headlineOf(
  { stages }: Pick<ExplainResult, 'stages'>,
  bench: Pick<BenchResult, 'variants'> | null = null,
): Headline | null {
  const stage = leadStage(stages);
  if (!stage) return null;
  const { kind, roofline_ms: roofline } = stage;
  const time = headlineTime(stage);
  const ms = time.value;
  if (ms === null) return null;
  const rooflineText = roofline.value
    ? `, ${formatFactor(ms / roofline.value, (halfInterval(time) ?? 0) / roofline.value)} roofline`
    : '';
  const name = kind === 'outside' ? 'capture' : kind;
  return {
    text: `${name} ${formatFigure(time)}${perStep[kind] ?? ''}${bench ? throughputOf(bench) : ''}${rooflineText}`,
    figure: { name: isProfiled(stage) ? `${name} under a profiler` : name, value: ms, unit: 'ms' },
  };
}

function throughputOf({ variants }: Pick<BenchResult, 'variants'>): string {
  const rates = variants
    .flatMap(({ points }) => points)
    .flatMap(({ batch_size: batch, throughput: { output_tokens_per_s: rate } }) =>
      rate.value === null ? [] : [{ batch, rate: rate.value }],
    );
  const best = rates.toSorted((rate, other) => other.rate - rate.rate)[0];
  if (!best) return '';
  const text = formatQuantity(best.rate, 'tok/s');
  return rates.length === 1 ? `, ${text} end to end` : `, up to ${text} end to end at batch ${best.batch}`;
}

const perStep: Partial<Record<StageWaterfall['kind'], string>> = { decode: '/step', mixed: '/step' };
