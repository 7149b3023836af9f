import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { Fact } from '../importer.js';

/** One number of a result file: a row of the table `metrics`, less its keys. */
export interface ResultMetric {
  name: string;
  defined_as_ours: boolean;
  statistic: string;
  value: number;
  unit: string;
  n: number | null;
  definition: string;
  source: string;
}

/** One load point, test or repeat of the file. Times of rows are ns since the file's own zero. */
export interface ResultPoint {
  label: string;
  metrics: ResultMetric[];
  requests: Row<'requests'>[];
  iterations: Row<'iterations'>[];
}

/** What a benchmark tool's file says, before it is put into tables. */
export interface ResultFile {
  tool: { name: string; version: string | null };
  /** Wall clock of the rows' zero, ns since the epoch; null when the file does not tell. */
  realtime_zero_ns: bigint | null;
  clock: { name: string; resolution_ns: number; error_bound_ns: number | null };
  hardware: Record<string, Fact>;
  software: Record<string, Fact>;
  points: ResultPoint[];
  issues: Issue[];
}

export const unknownClock = { name: 'none in the file', resolution_ns: 1, error_bound_ns: null };

export function warning(code: string, text: string, count?: number): Issue {
  return { code, severity: 'warning', text, ...(count === undefined ? {} : { count }) };
}

export function info(code: string, text: string): Issue {
  return { code, severity: 'info', text };
}

export const allFailed = (tool: string, label: string): Issue => ({
  code: 'all_requests_failed',
  severity: 'error',
  text: `${tool}, ${label}: no request completed. The zeros the tool writes then are not measurements and were left out.`,
});

export const notStreamed = (label: string): Issue =>
  warning('not_streamed', `${label}: answers were not streamed, so that there is no first token.`);

/** Failures are told, never averaged in. */
export const failures = (label: string, failed: number): Issue =>
  warning(
    'requests_failed',
    `${label}: ${failed} ${failed === 1 ? 'request that failed is' : 'requests that failed are'} in no latency.`,
    failed,
  );

/**
 * Repeats of known length at unknown moments: laid end to end from the file's zero, so that `end_ns − start_ns` is
 * what was measured.
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
