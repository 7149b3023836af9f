import type { BenchResult } from '../../model/documents/bench.js';
import type { ExplainResult, StageWaterfall } from '../../model/documents/explain.js';
import type { ServingResult } from '../../model/documents/serving.js';
import { halfInterval } from '../../model/half-interval.js';
import { busyMs, headlineTime, idleIn, isProfiled } from '../../model/headline-time.js';
import type { Headline } from '../../session/headline.js';
import { formatFactor, formatFigure, formatPart, formatQuantity } from '../../vocabulary/format.js';
import { loadLabel } from '../../vocabulary/loads.js';
import { leadStage } from './sentences.js';

/** A point of a benchmark or a load level, as the headline needs it. */
export interface HeadlinePoint {
  /** "batch 8", "4 users". */
  at: string;
  /** Mean of a benchmark's point, median of a load level, as their pages have it. */
  ttft_ms: number | null;
  output_tokens_per_s: number | null;
}

/**
 * "decode 13.1 ms/step, TTFT from 18.2 ms, up to 312 tok/s end to end at batch 8, 2.10× roofline, GPU idle 74 %": the time per instance of
 * the leading stage, without the profiler if known, and the best TTFT and output throughput of a benchmark or load test. Null without a
 * measured stage.
 */
export function headlineOf(
  { stages }: Pick<ExplainResult, 'stages'>,
  points: readonly HeadlinePoint[] = [],
): Headline | null {
  const stage = leadStage(stages);
  if (!stage) return null;
  const { kind, roofline_ms: roofline, source } = stage;
  const time = headlineTime(stage);
  const ms = time.value;
  if (ms === null) return null;
  const name = `${kind === 'outside' ? 'capture' : kind === 'other' ? 'step' : kind}${stage.from_schedule ? ' from schedule' : ''}`;
  const parts = [
    `${name} ${formatFigure(time)}${perStep[kind] ?? ''}`,
    ...ttftOf(points),
    ...throughputOf(points),
    ...(roofline.value
      ? [`${formatFactor(ms / roofline.value, (halfInterval(time) ?? 0) / roofline.value)} roofline`]
      : []),
    ...(source === 'trace' ? [`GPU idle ${formatPart(idleIn(ms, busyMs(stage)).share, 1)}`] : []),
  ];
  return {
    text: parts.join(', '),
    figure: { name: isProfiled(stage) ? `${name} under a profiler` : name, value: ms, unit: 'ms' },
  };
}

function ttftOf(points: readonly HeadlinePoint[]): string[] {
  const times = points.flatMap(({ ttft_ms: ms }) => (ms === null ? [] : [ms]));
  if (times.length === 0) return [];
  return [`TTFT ${times.length === 1 ? '' : 'from '}${formatQuantity(Math.min(...times), 'ms')}`];
}

function throughputOf(points: readonly HeadlinePoint[]): string[] {
  const rates = points.flatMap(({ at, output_tokens_per_s: rate }) => (rate === null ? [] : [{ at, rate }]));
  const best = rates.toSorted((rate, other) => other.rate - rate.rate)[0];
  if (!best) return [];
  const text = formatQuantity(best.rate, 'tok/s');
  return [rates.length === 1 ? `${text} end to end` : `up to ${text} end to end at ${best.at}`];
}

export const benchPoints = ({ variants }: Pick<BenchResult, 'variants'>): HeadlinePoint[] =>
  variants
    .flatMap(({ points }) => points)
    .map(({ batch_size: batch, latency, throughput }) => ({
      at: `batch ${batch}`,
      ttft_ms: 'mean' in latency.ttft_ms ? latency.ttft_ms.mean : null,
      output_tokens_per_s: throughput.output_tokens_per_s.value,
    }));

export const loadPoints = ({ points }: Pick<ServingResult, 'points'>): HeadlinePoint[] =>
  points.map(({ load, latency, throughput }) => ({
    at: loadLabel(load),
    ttft_ms: 'p50' in latency.ttft ? latency.ttft.p50 : null,
    output_tokens_per_s: throughput.output_tokens_per_s.value,
  }));

const perStep: Partial<Record<StageWaterfall['kind'], string>> = { decode: '/step', mixed: '/step' };
