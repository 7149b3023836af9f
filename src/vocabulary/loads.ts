import type { Load } from '../model/documents/serving.js';
import { formatSetting } from './format.js';

/** "8 users", "5 req/s (poisson)", "trace"; the same on every surface. */
export function loadLabel({ kind, concurrency, rate_per_s: rate }: Load): string {
  if (kind === 'closed') return `${concurrency ?? 0} user${concurrency === 1 ? '' : 's'}`;
  return rate === null ? kind : `${formatSetting(rate)} req/s (${kind})`;
}

/** Latencies of requests, in reading order. */
export const latencyLabels = {
  ttft: 'TTFT',
  tpot: 'TPOT',
  itl: 'ITL',
  e2e: 'end to end',
  ttft_from_schedule: 'TTFT since the request was due',
  e2e_from_schedule: 'end to end since the request was due',
} as const;
export type LatencyId = keyof typeof latencyLabels;

/** Rates of a load, by the document's names. */
export const rateLabels = {
  output_tokens_per_s: 'output',
  total_tokens_per_s: 'prompt and output',
  requests_per_s: 'completed',
  goodput: 'within the SLO (goodput)',
  offered_requests_per_s: 'offered',
} as const;
