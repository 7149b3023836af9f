import type { Load, Slo } from '../model/documents/serving.js';
import { formatQuantity, formatSetting, formatShareSetting, plural } from './format.js';

/** "8 users", "5 req/s (Poisson)", "1 → 6 req/s (ramp)", "trace"; the same on every surface. */
export function loadLabel({
  kind,
  concurrency,
  rate_per_s: rate,
  from_per_s: from,
  to_per_s: to,
}: Load): string {
  if (kind === 'closed') return plural(concurrency ?? 0, 'user');
  if (from !== undefined && to !== undefined)
    return `${formatSetting(from)} → ${formatSetting(to, 'req/s')} (ramp)`;
  // Poisson is a name.
  const arrivals = kind === 'poisson' ? 'Poisson' : kind;
  if (rate === null) return arrivals;
  // The rate of a trace is computed, others are settings.
  const text = kind === 'trace' ? formatQuantity(rate, 'req/s') : formatSetting(rate, 'req/s');
  return `${text} (${arrivals})`;
}

const settingTime = (ms: number): string =>
  ms < 1000 ? formatSetting(ms, 'ms') : formatSetting(ms / 1000, 's');

/** "TTFT ≤ 200 ms and TPOT ≤ 30 ms for at least 99 % of requests" */
export function sloLabel(slo: Slo): string {
  const targets = (['ttft', 'tpot', 'e2e'] as const).flatMap((name) => {
    const ms = slo[`${name}_ms`];
    return ms === null ? [] : [`${latencyLabels[name]} ≤ ${settingTime(ms)}`];
  });
  const requests = slo.share === 1 ? 'all requests' : `at least ${formatShareSetting(slo.share)} of requests`;
  return `${targets.join(' and ')} for ${requests}`;
}

/** Latencies of requests, in display order. */
export const latencyLabels = {
  ttft: 'TTFT',
  tpot: 'TPOT',
  itl: 'ITL',
  e2e: 'end to end',
  ttft_from_schedule: 'TTFT from schedule',
  e2e_from_schedule: 'end to end from schedule',
} as const;
export const latencyMeanings: Readonly<Record<keyof typeof latencyLabels, string>> = {
  ttft: 'time to first token: from sending the request to the first token',
  tpot: 'time per output token after the first: (end to end - TTFT) / (output tokens - 1)',
  itl: 'inter-token latency: between two tokens as they arrive',
  e2e: 'from sending the request to its last token',
  ttft_from_schedule: 'TTFT from the scheduled send time of open-loop load, including client lag',
  e2e_from_schedule: 'end to end from the scheduled send time',
};
export type LatencyId = keyof typeof latencyLabels;

/** Rates of a load, by the document's names. */
export const rateLabels = {
  output_tokens_per_s: 'output',
  total_tokens_per_s: 'prompt and output',
  requests_per_s: 'completed',
  goodput: 'within the SLO (goodput)',
  offered_requests_per_s: 'offered',
} as const;

export const rateMeanings: Readonly<Record<keyof typeof rateLabels, string>> = {
  output_tokens_per_s: 'output tokens per second',
  total_tokens_per_s: 'prompt and output tokens per second',
  requests_per_s: 'completed requests per second',
  goodput: 'requests per second that meet all SLO targets',
  offered_requests_per_s:
    'scheduled requests per second over the gaps between them, of which n requests have n − 1: with few requests, completed can exceed it',
};
