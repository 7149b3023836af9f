import { isRecomputed } from '../../model/metric-source.js';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { MetricList, CommonMetric } from './metric-list.js';
import { warning } from './result-file.js';
import { mean, percentile, standardDeviation } from '../../model/statistics.js';
import { formatQuantity, plural } from '../../vocabulary/format.js';

/** One request with inferscope's definitions, ms; null if the file lacks the data. */
export interface RequestSample {
  /** Relative to the file's zero. */
  sent_ms: number | null;
  ttft_ms: number | null;
  e2e_ms: number | null;
  /** One gap per token; null if only gaps of chunks are known. */
  gaps_ms: readonly number[] | null;
  input_tokens: number | null;
  output_tokens: number | null;
  /** Null for a success. */
  failure: { status: string; error: string | null } | null;
  request_id?: string | null;
  warmup?: boolean;
  chunks?: number | null;
}

/** (e2e − TTFT) / (n − 1), ms; null for fewer than two tokens. */
function tpotMs({ ttft_ms, e2e_ms, output_tokens }: RequestSample): number | null {
  if (ttft_ms === null || e2e_ms === null || output_tokens === null || output_tokens < 2) return null;
  return (e2e_ms - ttft_ms) / (output_tokens - 1);
}

/** Mean, sd (n − 1), median, extremes and type 7 percentiles of inferscope's metrics, over successful requests. */
export function recompute(requests: readonly RequestSample[], list: MetricList): void {
  const succeeded = requests.filter(({ failure, warmup }) => failure === null && !warmup);
  const source = `recomputed from ${plural(succeeded.length, 'request')}`;
  const put = (name: CommonMetric, values: (number | null)[]) => {
    const sorted = Float64Array.from(values.filter((value) => value !== null)).sort();
    const n = sorted.length;
    if (n === 0) return;
    for (const [statistic, value] of summaryOf(sorted)) list.addCommon(name, statistic, value, { n, source });
  };
  put(
    'ttft',
    succeeded.map(({ ttft_ms }) => ttft_ms),
  );
  put('tpot', succeeded.map(tpotMs));
  put(
    'e2e',
    succeeded.map(({ e2e_ms }) => e2e_ms),
  );
  if (succeeded.every(({ gaps_ms }) => gaps_ms !== null)) {
    const gaps: number[] = [];
    for (const { gaps_ms } of succeeded) for (const gap of gaps_ms!) gaps.push(gap);
    put('itl', gaps);
  }
}

/** `sorted` ascending, not empty. */
export function summaryOf(sorted: Float64Array): [string, number | null][] {
  const n = sorted.length;
  return [
    ['mean', mean(sorted)],
    ['sd', n > 1 ? standardDeviation(sorted) : null],
    ['min', sorted[0]!],
    ['median', percentile(sorted, 0.5)],
    ['p90', percentile(sorted, 0.9)],
    ['p95', percentile(sorted, 0.95)],
    ['p99', percentile(sorted, 0.99)],
    ['max', sorted[n - 1]!],
  ];
}

/** A difference larger than rounding. */
const roundingTolerance = 0.01;

/** A tool's mean that disagrees with its own requests. */
export function disagreements(list: MetricList, label: string): Issue[] {
  const means = list.metrics.filter(
    ({ same_definition, statistic }) => same_definition && statistic === 'mean',
  );
  return means.flatMap((reported): Issue[] => {
    if (isRecomputed(reported.source)) return [];
    const recomputed = means.find(({ name, source }) => name === reported.name && isRecomputed(source));
    if (
      !recomputed ||
      Math.abs(recomputed.value - reported.value) <= roundingTolerance * Math.abs(recomputed.value)
    )
      return [];
    const text = `${label}: mean ${reported.name} is ${formatQuantity(reported.value, reported.unit, 4)} in the file, but ${formatQuantity(recomputed.value, recomputed.unit, 4)} from its own requests.`;
    return [warning('recomputed_differs', text)];
  });
}

const nsPerMs = 1e6;
const ns = (ms: number | null): number | null => (ms === null ? null : Math.round(ms * nsPerMs));

/** Rows of `requests`; times are null if the file has only lengths. */
export function requestRows(requests: readonly RequestSample[]): Row<'requests'>[] {
  return requests.map((request, index) => {
    const { sent_ms, ttft_ms, e2e_ms, gaps_ms, failure } = request;
    const after = (ms: number | null) => (sent_ms === null || ms === null ? null : ns(sent_ms + ms));
    const tpot = tpotMs(request);
    return {
      request_id: request.request_id ?? String(index),
      sent_ns: ns(sent_ms),
      first_token_ns: after(ttft_ms),
      end_ns: after(e2e_ms),
      ttft_ns: ns(ttft_ms),
      tpot_ns: tpot === null ? null : tpot * nsPerMs,
      itl_ns: gaps_ms === null ? null : JSON.stringify(gaps_ms.map(ns)),
      chunks: request.chunks ?? null,
      input_tokens: request.input_tokens,
      output_tokens: request.output_tokens,
      status: failure?.status ?? 'ok',
      error: failure?.error ?? null,
      warmup: request.warmup ?? false,
    };
  });
}
