import type { Issue } from '../../model/document.js';
import type { ResultMetric } from '../../model/metric-source.js';
import type { Row } from '../../model/tables.js';
import type { Fact } from '../importer.js';
import type { IssueCode } from '../../model/issue-codes.js';

/** One load point, test or repeat of the file. Times of rows are ns since the file's own zero. */
export interface ResultPoint {
  label: string;
  metrics: ResultMetric[];
  requests: Row<'requests'>[];
  iterations: Row<'iterations'>[];
}

/** Contents of a benchmark tool's file, before it is written into tables. */
export interface ResultFile {
  tool: { name: string; version: string | null };
  /** Wall clock of the rows' zero, ns since the epoch; null if the file does not record it. */
  realtime_zero_ns: bigint | null;
  clock: { name: string; resolution_ns: number; error_bound_ns: number | null };
  hardware: Record<string, Fact>;
  software: Record<string, Fact>;
  points: ResultPoint[];
  issues: Issue[];
}

/** Label of a file's only load if the file does not describe it. */
export const unknownLoad = 'unknown load';

export const unknownClock = { name: 'not recorded', resolution_ns: 1, error_bound_ns: null };

export function warning(code: IssueCode, text: string, count?: number): Issue {
  return { code, severity: 'warning', text, ...(count === undefined ? {} : { count }) };
}

export function info(code: IssueCode, text: string): Issue {
  return { code, severity: 'info', text };
}

export const allFailed = (tool: string, label: string): Issue => ({
  code: 'all_requests_failed',
  severity: 'error',
  text: `${tool}, ${label}: no request completed. The zeros that the tool writes in this case are not measurements and were dropped.`,
});

export const notStreamed = (label: string): Issue =>
  warning('not_streamed', `${label}: answers were not streamed, so there is no first-token time.`);

/** Failures are reported, never averaged in. */
export const requestsFailed = (label: string, failed: number): Issue =>
  warning(
    'requests_failed',
    `${label}: ${failed} failed ${failed === 1 ? 'request is' : 'requests are'} excluded from all latencies.`,
    failed,
  );

/**
 * Repeats of known length at unknown times: placed end to end, so that `end_ns − start_ns` is the measured duration.
 * @param from start of the first one, ns since the file's zero
 */
export function endToEnd(
  durationsNs: readonly number[],
  facts: Pick<Row<'iterations'>, 'batch_size' | 'input_len' | 'output_len'>,
  from = 0,
): Row<'iterations'>[] {
  let now = from;
  return durationsNs.map((duration, iteration) => {
    const start_ns = Math.round(now);
    now += duration;
    return { ...facts, iteration, launch: 0, warmup: false, start_ns, end_ns: Math.round(now) };
  });
}
