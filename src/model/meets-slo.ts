import type { Slo } from './documents/serving.js';
import type { Row } from './tables.js';

type TimedRequest = Pick<
  Row<'requests'>,
  'status' | 'scheduled_ns' | 'sent_ns' | 'first_token_ns' | 'end_ns' | 'tpot_ns' | 'output_tokens'
>;

/**
 * A request is good when it was answered and meets every limit. A request of one token has no TPOT. In an open loop TTFT
 * and e2e count from when the request was due, so that queueing in the client is included (no coordinated omission).
 */
export function meetsSlo(row: TimedRequest, slo: Slo, open: boolean): boolean {
  const within = (ns: number | null, ms: number | null) => ms === null || (ns !== null && ns / 1e6 <= ms);
  const from = open ? row.scheduled_ns : row.sent_ns;
  const since = (ns: number | null | undefined) =>
    (ns ?? null) === null || (from ?? null) === null ? null : ns! - from!;
  const tpot = row.tpot_ns ?? (row.output_tokens === 1 ? 0 : null);
  return (
    row.status === 'ok' &&
    within(since(row.first_token_ns), slo.ttft_ms) &&
    within(tpot, slo.tpot_ms) &&
    within(since(row.end_ns), slo.e2e_ms)
  );
}
