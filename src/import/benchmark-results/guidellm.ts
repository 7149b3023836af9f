import type { Issue } from '../../model/document.js';
import { type JsonObject, metricList, numberOf, objectOf, textOf } from './metric-list.js';
import { disagreements, recompute, type RequestSample, requestRows } from './recompute.js';
import { allFailed, failures, info, type ResultFile, type ResultPoint, warning } from './result-file.js';
import { readObjects, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/** GuideLLM's `benchmarks.json`: one benchmark a load point. A distribution with count 0 is filled with zeros. */
export const guidellmImporter = resultsImporter({
  name: 'guidellm',
  sniff: (firstBytes) =>
    /^\s*\{/.test(firstBytes) &&
    (firstBytes.includes('"guidellm_version"') ||
      (/"benchmarks"\s*:\s*\[/.test(firstBytes) &&
        /"generative_benchmark|"time_per_output_token_ms"/.test(firstBytes))),
  read: async (path) => {
    const [one] = await readObjects(path);
    return guidellm(one!, path);
  },
});

export function guidellm(file: JsonObject, path: string): ResultFile {
  const benchmarks = Array.isArray(file['benchmarks']) ? file['benchmarks'].map(objectOf) : [];
  if (benchmarks.length === 0 || benchmarks.some((one) => one === null)) {
    throw unreadable(path, 'It has no "benchmarks".');
  }
  const all = benchmarks as JsonObject[];
  const starts = all.map((one) => numberOf(one['start_time'])).filter((start) => start !== null);
  const zero = starts.length > 0 ? Math.min(...starts) : null;
  const issues: Issue[] = [
    info(
      'percentiles_defined_otherwise',
      "GuideLLM's percentiles are steps of the distribution, not interpolated: they are kept as p90_step, p99_step, …",
    ),
  ];
  const metadata = objectOf(file['metadata']);
  return {
    tool: { name: 'guidellm', version: textOf(metadata?.['guidellm_version']) },
    realtime_zero_ns: zero === null ? null : BigInt(Math.round(zero * 1e6)) * 1000n,
    clock: { name: 'time.time()', resolution_ns: 1000, error_bound_ns: zero === null ? null : 1000 },
    hardware: {},
    software: {
      benchmark_platform: textOf(metadata?.['platform']),
      python: textOf(metadata?.['python_version']),
    },
    points: all.map((one, index) => pointOf(one, labelOf(one, index), zero, issues)),
    issues,
  };
}

function labelOf(benchmark: JsonObject, index: number): string {
  const strategy = objectOf(objectOf(benchmark['config'])?.['strategy']);
  const kind = textOf(strategy?.['type_']);
  const streams = numberOf(strategy?.['streams']) ?? numberOf(strategy?.['max_concurrency']);
  const rate = numberOf(strategy?.['rate']);
  if (kind === null) return `benchmark ${index}`;
  if (rate !== null) return `${kind} ${rate} req/s`;
  return streams === null || kind === 'synchronous' ? kind : `${kind} ${streams}`;
}

/** Our name, or null for one that is defined otherwise; then its unit, factor and meaning. */
const meanings: Record<string, ['ttft' | 'tpot' | null, string, number, string]> = {
  time_to_first_token_ms: ['ttft', 'ms', 1, 'request sent to the first iteration with tokens'],
  inter_token_latency_ms: ['tpot', 'ms', 1, ''],
  time_per_output_token_ms: [
    null,
    'ms',
    1,
    '(last token − request sent) / output tokens: the time to the first token is in it',
  ],
  request_latency: [null, 'ms', 1000, 'request sent to the end of the response, not to its last content'],
  requests_per_second: [null, 'req/s', 1, 'rate of completions, weighted by time'],
  request_concurrency: [null, 'requests', 1, 'requests under way, weighted by time'],
  output_tokens_per_second: [null, 'tok/s', 1, 'rate of generated tokens, weighted by time'],
  tokens_per_second: [null, 'tok/s', 1, 'rate of prompt and generated tokens, weighted by time'],
  prompt_token_count: [null, 'tokens', 1, 'prompt tokens of a request'],
  output_token_count: [null, 'tokens', 1, 'generated tokens of a request'],
  total_token_count: [null, 'tokens', 1, 'prompt and generated tokens of a request'],
};

function pointOf(benchmark: JsonObject, label: string, zero: number | null, issues: Issue[]): ResultPoint {
  const list = metricList('guidellm');
  const metrics = objectOf(benchmark['metrics']) ?? {};
  const successful = (name: string) => objectOf(objectOf(metrics[name])?.['successful']);
  const counts = objectOf(metrics['request_totals']);
  const completed = numberOf(counts?.['successful']) ?? numberOf(successful('request_latency')?.['count']);
  const errored =
    numberOf(counts?.['errored']) ??
    numberOf(objectOf(objectOf(metrics['request_latency'])?.['errored'])?.['count']);
  list.ours('completed', 'value', completed, { source: 'file: metrics.request_totals.successful' });
  list.ours('failed', 'value', errored, { source: 'file: metrics.request_totals.errored' });
  const duration = numberOf(benchmark['duration']);
  list.ours('duration', 'value', duration, { source: 'file: duration' });
  const requests = requestsOf(benchmark, zero);
  if (completed === 0) {
    issues.push(allFailed('GuideLLM', label));
    return { label, metrics: list.metrics, requests: requestRows(requests), iterations: [] };
  }
  for (const [name, [ours, unit, factor, definition]] of Object.entries(meanings)) {
    const summary = successful(name);
    const n = numberOf(summary?.['count']);
    if (!summary || n === 0) continue;
    for (const [statistic, value] of statisticsOf(summary)) {
      const details = { n, source: `file: metrics.${name}.successful` };
      const scaled = value === null ? null : value * factor;
      if (ours)
        list.ours(ours, statistic, scaled, definition === '' ? details : { ...details, note: definition });
      else list.own(name.replace(/_ms$/, ''), unit, definition, statistic, scaled, details);
    }
  }
  totals(benchmark, successful, list, { completed, duration });
  recompute(requests, list);
  const cut = requests.filter(({ failure }) => failure?.status === 'incomplete').length;
  if (cut > 0)
    issues.push(
      warning(
        'requests_incomplete',
        `${label}: ${cut} requests cut off by the end of the benchmark are in no latency.`,
        cut,
      ),
    );
  if (errored) issues.push(failures(label, errored));
  issues.push(...disagreements(list, label));
  return { label, metrics: list.metrics, requests: requestRows(requests), iterations: [] };
}

/** Sums over the whole benchmark; with a warm-up or cool-down cut off, they are of another time than the counts. */
function totals(
  benchmark: JsonObject,
  successful: (name: string) => JsonObject | null,
  list: ReturnType<typeof metricList>,
  { completed, duration }: { completed: number | null; duration: number | null },
): void {
  const input = numberOf(successful('prompt_token_count')?.['total_sum']);
  const output = numberOf(successful('output_token_count')?.['total_sum']);
  list.ours('input_tokens', 'value', input, {
    source: 'file: metrics.prompt_token_count.successful.total_sum',
  });
  list.ours('output_tokens', 'value', output, {
    source: 'file: metrics.output_token_count.successful.total_sum',
  });
  const config = objectOf(benchmark['config']);
  if (!duration || isSet(config?.['warmup']) || isSet(config?.['cooldown'])) return;
  const rate = (amount: number | null) => (amount === null ? null : amount / duration);
  list.ours('request_throughput', 'value', rate(completed), { source: 'recomputed: completed / duration' });
  list.ours('output_throughput', 'value', rate(output), { source: 'recomputed: output tokens / duration' });
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== 0;

function statisticsOf(summary: JsonObject): [string, number | null][] {
  const plain = [
    ['mean', 'mean'],
    ['median_step', 'median'],
    ['sd_population', 'std_dev'],
    ['min', 'min'],
    ['max', 'max'],
  ].map(([statistic, key]): [string, number | null] => [statistic!, numberOf(summary[key!])]);
  const percentiles = Object.entries(objectOf(summary['percentiles']) ?? {}).flatMap(
    ([key, value]): [string, number | null][] => {
      // p001 is 0.1 %, p999 is 99.9 %; two digits are percent.
      const digits = /^p(\d{2,3})$/.exec(key)?.[1];
      if (digits === undefined) return [];
      const percent = digits.length === 3 ? Number(digits) / 10 : Number(digits);
      return [[`p${percent}_step`, numberOf(value)]];
    },
  );
  return [...plain, ...percentiles];
}

const statuses = { successful: null, errored: 'failed', incomplete: 'incomplete' } as const;

function requestsOf(benchmark: JsonObject, zero: number | null): RequestSample[] {
  const requests = objectOf(benchmark['requests']) ?? {};
  return Object.entries(statuses).flatMap(([group, status]) => {
    const list = Array.isArray(requests[group]) ? requests[group] : [];
    return list.flatMap((one: unknown) => {
      const request = objectOf(one);
      return request ? [sampleOf(request, status, zero)] : [];
    });
  });
}

/** Moments are epoch seconds: `info.timings` from 0.4 on, flat fields before. */
function sampleOf(request: JsonObject, status: string | null, zero: number | null): RequestSample {
  const facts = objectOf(request['info']);
  const timings = objectOf(facts?.['timings']) ?? {};
  const moment = (...keys: string[]) =>
    keys.map((key) => numberOf(timings[key]) ?? numberOf(request[key])).find((value) => value !== null) ??
    null;
  const start = moment('request_start', 'start_time', 'request_start_time');
  const first = moment('first_token_iteration', 'first_token_time', 'first_iteration');
  const last = moment('last_token_iteration', 'last_token_time', 'last_iteration');
  const since = (value: number | null) => (value === null || start === null ? null : (value - start) * 1000);
  return {
    request_id: textOf(request['request_id']),
    sent_ms: start === null || zero === null ? null : (start - zero) * 1000,
    ttft_ms: status === null ? since(first) : null,
    e2e_ms: status === null ? since(last) : null,
    gaps_ms: null,
    chunks: numberOf(timings['token_iterations']),
    input_tokens: numberOf(request['prompt_tokens']),
    output_tokens: numberOf(request['output_tokens']),
    failure: status === null ? null : { status, error: textOf(facts?.['error']) ?? textOf(request['error']) },
  };
}
