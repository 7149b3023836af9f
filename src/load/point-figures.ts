import type { Slo } from '../model/documents/serving.js';
import { meetsSlo } from '../model/meets-slo.js';
import { median } from '../model/statistics.js';
import type { Row } from '../model/tables.js';
import { loadLevel, type LoadShape } from './load-shape.js';
import type { SweepPoint } from './sweep.js';
import type { LoadOutcome } from './threads.js';

/**
 * Send lags of the client, ms. Empty for an open load with a concurrency limit, because waits for a slot are part of
 * the load.
 */
export function sendLags(
  { exchanges }: LoadOutcome,
  load: { shape: LoadShape; concurrency: number | null },
): number[] {
  if (load.shape.kind !== 'closed' && load.concurrency !== null) return [];
  return exchanges
    .filter(({ warmup }) => !warmup)
    .map((exchange) => (exchange.dispatched_ns - exchange.scheduled_ns) / 1e6)
    .sort((x, y) => x - y);
}

/** Median TTFT of all answered requests, ms; null if none was answered. */
export function medianTtftMs(rows: readonly Row<'requests'>[]): number | null {
  const known = rows.flatMap(({ ttft_ns: ns }) => (ns === null || ns === undefined ? [] : [ns / 1e6]));
  return known.length === 0 ? null : median(known);
}

/** The figures for choosing the next load; results come from the session's tables. */
export function sweepPoint(
  rows: Row<'requests'>[],
  load: { shape: LoadShape },
  outcome: LoadOutcome,
  slo: Slo | null,
  stopped: boolean,
): SweepPoint {
  const measuredRequests = rows.filter((row) => row.warmup !== true && row.status !== 'cancelled');
  const ok = measuredRequests.filter((row) => row.status === 'ok');
  const begin = Math.min(...measuredRequests.map((row) => row.sent_ns ?? row.scheduled_ns ?? 0));
  const end = Math.max(...measuredRequests.map((row) => row.end_ns ?? 0));
  const tokens = ok.reduce((sum, row) => sum + (row.output_tokens ?? row.chunks ?? 0), 0);
  const good = ok.filter((row) => slo !== null && meetsSlo(row, slo, load.shape.kind !== 'closed'));
  return {
    level: loadLevel(load.shape),
    output_rate: end > begin ? tokens / ((end - begin) / 1e9) : 0,
    failed_share: measuredRequests.length === 0 ? 1 : 1 - ok.length / measuredRequests.length,
    meets_slo:
      slo === null ? null : measuredRequests.length > 0 && good.length / measuredRequests.length >= slo.share,
    stopped: stopped || outcome.exchanges.length === 0,
  };
}
