import type { LoadPlan, ServingPoint } from '../../model/documents/serving.js';

/** Share of a request's time above which waiting counts as queueing. */
const minWaitingShare = 0.5;
/** Batched prefill also delays the first token: smaller growth does not count as queueing. */
const minGrowth = 3;

/** Mean time that a request waits for its first token because of other requests. */
export interface Queueing {
  ttft_ms: number;
  /** TTFT of a request alone. */
  unloaded_ms: number;
  wait_ms: number;
  /** Share of its end-to-end time. By Little's law also the share of in-flight requests that wait. */
  share: number;
  /** Half of the time or more is waiting, and TTFT is at least three times that of a request alone. */
  queues: boolean;
}

/** TTFT of a request alone: the lower of the probe's and the lowest median of a load. Null if neither is known. */
export function unloadedTtft(points: readonly ServingPoint[], probe: LoadPlan['probe']): number | null {
  const medians = points.flatMap(({ latency: { ttft } }) => ('p50' in ttft ? [ttft.p50] : []));
  const known = [probe?.ttft_ms ?? null, ...medians].filter((time) => time !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** In an open loop latencies count from the due time: waiting for a slot is waiting for the server. */
export const countsFromDueTime = ({ kind }: ServingPoint['load']): boolean => kind !== 'closed';

export function queueing({ load, latency }: ServingPoint, unloadedMs: number | null): Queueing | null {
  const open = countsFromDueTime(load);
  const ttft = open ? latency.ttft_from_schedule : latency.ttft;
  const e2e = open ? latency.e2e_from_schedule : latency.e2e;
  if (unloadedMs === null || !('mean' in ttft) || !('mean' in e2e) || e2e.mean <= 0) return null;
  const wait_ms = Math.max(0, ttft.mean - unloadedMs);
  const share = wait_ms / e2e.mean;
  return {
    ttft_ms: ttft.mean,
    unloaded_ms: unloadedMs,
    wait_ms,
    share,
    queues: share >= minWaitingShare && ttft.mean >= minGrowth * unloadedMs,
  };
}
