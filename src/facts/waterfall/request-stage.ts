import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import { figure, type Figure, missing, type MissingFigure } from '../../model/figure.js';
import { mean, percentile, standardDeviation } from '../../model/statistics.js';
import { requestInterval } from '../serving/distribution.js';
import { orderedIds } from './bar-order.js';
import type { Part } from './split.js';
import { servingWords, type ServerTimes } from './serving-words.js';

/** One answered request, ms. Lists are ordered by send time. */
export interface RequestTimes {
  nth: number;
  /** From due time to send time; 0 in a closed loop. */
  lag_ms: number;
  first_byte_ms: number | null;
  ttft_ms: number;
  /** From first to last token. */
  decode_ms: number;
}

interface RequestFacts {
  execution_id: string;
  point: string;
  openLoop: boolean;
  /** SQL condition of the measured requests; null if only sums are known. */
  where: string | null;
  roofline: MissingFigure;
  sql?: { decode: string; ttft: string };
  /** Number of requests if the times are already means. */
  instances?: number | null;
}

/**
 * Minimum gap between first byte and first token, as a share of TTFT, that shows the response headers were sent before
 * the prefill.
 */
const minHeaderLead = 0.1;
const maxRows = 64;

/** A request of a load test: client, network, queue, prefill and decode if reported; the remainder is unattributed. */
export function requestStage(
  times: readonly RequestTimes[],
  server: ServerTimes,
  facts: RequestFacts,
): StageWaterfall {
  const totalsMs = times.map((time) => time.lag_ms + time.ttft_ms + time.decode_ms);
  const measuredMs = mean(totalsMs);
  const meanOf = (value: (requestTimes: RequestTimes) => number) => mean(times.map(value));
  const ttftMs = meanOf(({ ttft_ms }) => ttft_ms);
  const split = splitTtft(times, server, ttftMs);
  const parts: Part[] = [
    { id: 'kernels.prefill', ms: split.prefillMs },
    { id: 'kernels.decode', ms: meanOf(({ decode_ms }) => decode_ms) },
    { id: 'host.client', ms: meanOf(({ lag_ms }) => lag_ms) },
    { id: 'host.network', ms: split.networkMs },
    { id: 'host.queue', ms: split.queueMs },
    { id: 'unattributed', ms: split.restMs },
  ];
  const bars = orderedIds(parts).filter((id) => id !== 'roofline');
  const msOf = (id: string) => parts.find((part) => part.id === id)!.ms;
  const notes: Record<string, string> = {
    'host.queue': server.queueFrom?.text ?? '',
    'host.network': split.networkFrom,
    'kernels.prefill': "the server's own histogram of prefill times",
    unattributed: restNote(split.restMs, server),
  };
  const sorted = totalsMs.toSorted((a, b) => a - b);
  const quantile = (share: number) => percentile(sorted, share);
  return {
    kind: 'request',
    name: null,
    source: 'serving',
    execution_id: facts.execution_id,
    point: facts.point,
    ...(facts.openLoop ? { from_schedule: true } : {}),
    instances: facts.instances ?? times.length,
    measured_ms: measuredFigure(totalsMs, measuredMs, facts),
    median_ms: facts.where === null ? null : quantile(0.5),
    p10_ms: facts.where === null ? null : quantile(0.1),
    clock: 'host',
    clock_why: facts.openLoop
      ? 'from the due time of a request to its last token at the client (waiting for a slot counts as waiting for the server)'
      : 'from sending a request to its last token at the client',
    clean_ms: missing('no_profiler', 'the measured time is already clean: nothing was profiled'),
    roofline_ms: facts.roofline,
    bound: null,
    new_tokens: null,
    roofs: [],
    bars: bars.map((id): WaterfallBar => ({
      id,
      ms: msOf(id),
      share: measuredMs > 0 ? msOf(id) / measuredMs : 0,
      count: null,
      ...servingWords(id, server),
      sql: sqlOf(id, facts, { times: times.length, split, ttftMs }),
      note: notes[id] ?? null,
      parts: [],
    })),
    sum_error_share: Math.abs(bars.reduce((sum, id) => sum + msOf(id), 0) - measuredMs) / (measuredMs || 1),
    rows:
      facts.where === null
        ? []
        : times.slice(0, maxRows).map((time) => rowOf(time, split, { ttftMs, ids: bars })),
    ranks: [{ rank: null, device: null, measured_ms: measuredMs }],
  };
}

interface TtftSplit {
  queueMs: number;
  networkMs: number;
  networkFrom: string;
  prefillMs: number;
  restMs: number;
}

/** Parts of TTFT that are reported. They sum to at most TTFT: earlier parts take precedence. */
function splitTtft(times: readonly RequestTimes[], server: ServerTimes, ttftMs: number): TtftSplit {
  let remaining = ttftMs;
  const take = (amount: number | null) => {
    const partMs = Math.min(remaining, Math.max(0, amount ?? 0));
    remaining -= partMs;
    return partMs;
  };
  const network = networkOf(times, server, ttftMs);
  const queueMs = take(server.queueMs);
  const prefillMs = take(server.prefillMs);
  const networkMs = take(network?.ms ?? null);
  return { queueMs, prefillMs, networkMs, networkFrom: network?.from ?? '', restMs: remaining };
}

/** Client time minus the server's end-to-end time, else the fastest response header. */
function networkOf(
  times: readonly RequestTimes[],
  { e2eMs, clientE2eMs }: ServerTimes,
  ttftMs: number,
): { ms: number; from: string } | null {
  const clientMs = clientE2eMs ?? mean(times.map(({ ttft_ms, decode_ms }) => ttft_ms + decode_ms));
  if (e2eMs !== null && clientMs > e2eMs) {
    return { ms: clientMs - e2eMs, from: "the client's mean minus the server's own end-to-end histogram" };
  }
  const firstBytes = times.flatMap(({ first_byte_ms }) => (first_byte_ms === null ? [] : [first_byte_ms]));
  if (firstBytes.length < times.length || firstBytes.length === 0) return null;
  const headersCameFirst = ttftMs - mean(firstBytes) > minHeaderLead * ttftMs;
  return headersCameFirst
    ? {
        ms: Math.min(...firstBytes),
        from: 'the fastest first byte of an answer, which this server sends before the prefill: network and HTTP',
      }
    : null;
}

function restNote(ms: number, { queueMs, prefillMs }: ServerTimes): string {
  if (ms <= 0) return '';
  const unknown = [
    ...(queueMs === null ? ['waiting in the queue'] : []),
    ...(prefillMs === null ? ['prefill'] : []),
    'scheduling and HTTP',
  ];
  return `before the first token; ${unknown.join(', ')} are not distinguished`;
}

/** Figures known only for the mean request are distributed in proportion to each request's TTFT. */
function rowOf(
  requestTimes: RequestTimes,
  split: TtftSplit,
  { ttftMs, ids }: { ttftMs: number; ids: readonly string[] },
): StageWaterfall['rows'][number] {
  const share = ttftMs > 0 ? requestTimes.ttft_ms / ttftMs : 0;
  const ms: Record<string, number> = {
    'kernels.prefill': split.prefillMs * share,
    'kernels.decode': requestTimes.decode_ms,
    'host.client': requestTimes.lag_ms,
    'host.network': split.networkMs * share,
    'host.queue': split.queueMs * share,
    unattributed: ttftMs > 0 ? split.restMs * share : requestTimes.ttft_ms,
  };
  return {
    stage_id: requestTimes.nth,
    label: `request ${requestTimes.nth}`,
    measured_ms: requestTimes.lag_ms + requestTimes.ttft_ms + requestTimes.decode_ms,
    bars: ids.map((id) => ({ id, ms: ms[id] ?? 0 })),
  };
}

/** SQL with one row per request that sums to the bar. Figures known only for the mean are subtracted from TTFT. */
function sqlOf(
  id: string,
  { where, openLoop: open, sql }: RequestFacts,
  { times, split, ttftMs }: { times: number; split: TtftSplit; ttftMs: number },
): string | null {
  if (where === null) {
    return id === 'kernels.decode'
      ? (sql?.decode ?? null)
      : id === 'unattributed'
        ? (sql?.ttft ?? null)
        : null;
  }
  const rows = (expression: string) =>
    `SELECT coalesce(request_id, 'request') AS what, output_tokens AS count, (${expression}) / 1e6 / ${times} AS ms
FROM requests WHERE ${where}`;
  switch (id) {
    case 'kernels.decode':
      return `${rows('end_ns - first_token_ns')} ORDER BY 3 DESC`;
    case 'host.client':
      return open ? `${rows('greatest(0, sent_ns - scheduled_ns)')} ORDER BY 3 DESC` : null;
    case 'unattributed':
      return `${rows('first_token_ns - sent_ns')}
UNION ALL SELECT '(in other bars)', NULL, ${split.restMs - ttftMs} ORDER BY 3 DESC`;
    default:
      return null;
  }
}

function measuredFigure(
  totalsMs: readonly number[],
  meanMs: number,
  { where, instances }: RequestFacts,
): Figure {
  const n = instances ?? totalsMs.length;
  if (where === null) return figure(meanMs, 'ms', 'mean of the file', instances ? { n } : {});
  const source = 'answered requests of the load, without warm-up';
  if (totalsMs.length < 2) return figure(meanMs, 'ms', source, { n });
  const ci95 = requestInterval(totalsMs);
  return figure(meanMs, 'ms', source, { n, sd: standardDeviation(totalsMs), ...(ci95 && { ci95 }) });
}
