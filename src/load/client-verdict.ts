import type { ThreadHealth } from './client-health.js';
import { formatMs, formatPercent } from '../vocabulary/format.js';

/** The client's own part in a result. Milliseconds; null where nothing was sent. */
export interface ClientVerdict {
  threads: number;
  /** From when a request was due (or its user free) to when this client turned to it; waits for a slot left out. */
  send_lag_p50_ms: number | null;
  send_lag_p99_ms: number | null;
  event_loop_delay_p99_ms: number;
  event_loop_delay_max_ms: number;
  /** Utilization of the busiest thread, 0 to 1. */
  event_loop_utilization: number;
  process_cores: number;
  bound: boolean;
  /** Why it is bound; empty when it is not. */
  reasons: string[];
}

/** Limits of the verdict. */
const clientLimits = {
  /** A loop busier than this queues what arrives. */
  event_loop_utilization: 0.9,
  /** Lateness below this never counts: timers have 1 ms. */
  least_ms: 2,
  /** Beyond it, lateness counts when it is this share of the median TTFT. */
  share_of_ttft: 0.1,
} as const;

/**
 * Was it us? Yes when a thread had no time left, or was late by what matters for the TTFT measured.
 * @param sendLags of an open loop without a bound on concurrency, or of a closed loop, ms ascending
 */
export function clientVerdict(
  threads: readonly ThreadHealth[],
  sendLags: readonly number[],
  medianTtftMs: number | null,
): ClientVerdict {
  const most = (pick: (thread: ThreadHealth) => number) => Math.max(0, ...threads.map(pick));
  const at = (share: number) =>
    sendLags[Math.min(sendLags.length - 1, Math.floor(sendLags.length * share))] ?? null;
  const delay = most((thread) => thread.event_loop_delay_p99_ms);
  const busy = most((thread) => thread.event_loop_utilization);
  const allowed = Math.max(clientLimits.least_ms, clientLimits.share_of_ttft * (medianTtftMs ?? 0));
  const lag = at(0.99);
  const reasons: string[] = [];
  // Starting up keeps a loop busy for a moment; a run shorter than that says nothing.
  const long = threads.some(({ seconds }) => seconds > 0.3);
  if (long && busy > clientLimits.event_loop_utilization)
    reasons.push(`its event loop was busy ${formatPercent(busy)} of the time`);
  // Late and yet idle: it waited for a core, not for itself.
  const starved = busy < 0.5 ? ' (other programs had the cores)' : '';
  if (delay > allowed)
    reasons.push(
      `its event loop was ${formatMs(delay)} late at p99, ${formatMs(allowed)} are allowed${starved}`,
    );
  if (lag !== null && lag > allowed)
    reasons.push(`requests were sent ${formatMs(lag)} late at p99, ${formatMs(allowed)} are allowed`);
  return {
    threads: threads.length,
    send_lag_p50_ms: at(0.5),
    send_lag_p99_ms: lag,
    event_loop_delay_p99_ms: delay,
    event_loop_delay_max_ms: most((thread) => thread.event_loop_delay_max_ms),
    event_loop_utilization: busy,
    process_cores: most((thread) => thread.process_cores),
    bound: reasons.length > 0,
    reasons,
  };
}
