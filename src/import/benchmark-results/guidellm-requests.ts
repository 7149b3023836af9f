import { type JsonObject, numberOf, objectOf, textOf } from './metric-list.js';
import type { RequestSample } from './recompute.js';

const statuses = { successful: null, errored: 'failed', incomplete: 'incomplete' } as const;

/** Epoch seconds of the measured part. */
type Window = readonly [start: number, end: number];

/**
 * The part of the benchmark between warm-up and cool-down; null if nothing was excluded. From 0.4 on the durations of both
 * are recorded and decide, because `config.warmup` is present even if none was requested. Before, `args` or `config` has them.
 */
export function measuredWindow(benchmark: JsonObject): Window | null {
  const [start, end] = [numberOf(benchmark['start_time']), numberOf(benchmark['end_time'])];
  const reported = [benchmark['warmup_duration'], benchmark['cooldown_duration']].map(numberOf);
  const requestedDurations = [objectOf(benchmark['args']), objectOf(benchmark['config'])].flatMap((from) =>
    ['warmup_duration', 'cooldown_duration', 'warmup', 'cooldown'].map((key) => numberOf(from?.[key])),
  );
  const durations = reported.some((duration) => duration !== null) ? reported : requestedDurations;
  return start !== null && end !== null && durations.some((duration) => duration !== null && duration > 0)
    ? [start, end]
    : null;
}

/** Requests of one benchmark. As in the tool, requests in flight at an end of the window count. */
export function requestsOf(
  benchmark: JsonObject,
  zero: number | null,
  window: Window | null,
): RequestSample[] {
  const requests = objectOf(benchmark['requests']) ?? {};
  return Object.entries(statuses).flatMap(([group, status]) => {
    const list = Array.isArray(requests[group]) ? requests[group] : [];
    return list.flatMap((value: unknown) => {
      const request = objectOf(value);
      return request ? [sampleOf(request, status, zero, window)] : [];
    });
  });
}

/** Moments are epoch seconds: `info.timings` from 0.4 on, flat fields before. */
function sampleOf(
  request: JsonObject,
  status: string | null,
  zero: number | null,
  window: Window | null,
): RequestSample {
  const facts = objectOf(request['info']);
  const timings = objectOf(facts?.['timings']) ?? {};
  const moment = (...keys: string[]) =>
    keys.map((key) => numberOf(timings[key]) ?? numberOf(request[key])).find((value) => value !== null) ??
    null;
  const start = moment('request_start', 'start_time', 'request_start_time');
  const first = moment('first_token_iteration', 'first_token_time', 'first_iteration');
  const last = moment('last_token_iteration', 'last_token_time', 'last_iteration');
  const end = moment('request_end', 'end_time', 'request_end_time');
  const msAfterStart = (value: number | null) =>
    value === null || start === null ? null : (value - start) * 1000;
  return {
    request_id: textOf(request['request_id']),
    sent_ms: start === null || zero === null ? null : (start - zero) * 1000,
    warmup: window !== null && start !== null && ((end ?? start) < window[0] || start > window[1]),
    ttft_ms: status === null ? msAfterStart(first) : null,
    e2e_ms: status === null ? msAfterStart(last) : null,
    gaps_ms: null,
    chunks: numberOf(timings['token_iterations']),
    input_tokens: numberOf(request['prompt_tokens']),
    output_tokens: numberOf(request['output_tokens']),
    failure: status === null ? null : { status, error: textOf(facts?.['error']) ?? textOf(request['error']) },
  };
}
