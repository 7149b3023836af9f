import type { ThreadHealth } from './client-health.js';
import { maxEventLoopUtilization } from '../model/documents/serving.js';
import { formatMs, formatPercent } from '../vocabulary/format.js';

/** Whether the client limited the result. Milliseconds; send lags are null if none are given. */
export interface ClientVerdict {
  threads: number;
  /** From when a request was due (or its user free) until this client handled it, without waits for a slot. */
  send_lag_p50_ms: number | null;
  send_lag_p99_ms: number | null;
  event_loop_delay_p99_ms: number;
  event_loop_delay_max_ms: number;
  /** Utilization of the busiest thread, 0 to 1. */
  event_loop_utilization: number;
  process_cores: number;
  bound: boolean;
  /** Why the client is the limit; empty if it is not. */
  reasons: string[];
}

/** Limits of the verdict. */
const clientLimits = {
  /** Smaller delays never count: timers have a resolution of 1 ms. */
  least_ms: 2,
  /** Above that, a delay counts from this share of the median TTFT. */
  share_of_ttft: 0.1,
} as const;

/**
 * Decides whether the client was the limit: a thread was fully busy, or late by a relevant share of the measured TTFT.
 * @param sendLags of an open loop without a bound on concurrency, or of a closed loop, ms ascending
 */
export function clientVerdict(
  threads: readonly ThreadHealth[],
  sendLags: readonly number[],
  medianTtftMs: number | null,
): ClientVerdict {
  const maxOf = (pick: (thread: ThreadHealth) => number) => Math.max(0, ...threads.map(pick));
  const quantile = (share: number) =>
    sendLags[Math.min(sendLags.length - 1, Math.floor(sendLags.length * share))] ?? null;
  const delay = maxOf((thread) => thread.event_loop_delay_p99_ms);
  const busy = maxOf((thread) => thread.event_loop_utilization);
  const allowed = Math.max(clientLimits.least_ms, clientLimits.share_of_ttft * (medianTtftMs ?? 0));
  const lag = quantile(0.99);
  const reasons: string[] = [];
  // Starting up keeps a loop busy for a moment, so shorter runs do not count.
  const hasLong = threads.some(({ seconds }) => seconds > 0.3);
  if (hasLong && busy > maxEventLoopUtilization)
    reasons.push(`its event loop was busy ${formatPercent(busy)} of the time`);
  // Late but idle: it waited for a core.
  const starved = busy < 0.5 ? ' (other programs had the cores)' : '';
  if (delay > allowed)
    reasons.push(
      `its event loop was ${formatMs(delay)} late at p99, ${formatMs(allowed)} are allowed${starved}`,
    );
  if (lag !== null && lag > allowed)
    reasons.push(`requests were sent ${formatMs(lag)} late at p99, ${formatMs(allowed)} are allowed`);
  return {
    threads: threads.length,
    send_lag_p50_ms: quantile(0.5),
    send_lag_p99_ms: lag,
    event_loop_delay_p99_ms: delay,
    event_loop_delay_max_ms: maxOf((thread) => thread.event_loop_delay_max_ms),
    event_loop_utilization: busy,
    process_cores: maxOf((thread) => thread.process_cores),
    bound: reasons.length > 0,
    reasons,
  };
}
