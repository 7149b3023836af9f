import type { Issue } from '../../model/document.js';
import {
  type JsonObject,
  type MetricList,
  metricList,
  numberOf,
  numbersOf,
  addServingTotals,
  textOf,
} from './metric-list.js';
import { disagreements, recompute, type RequestSample, requestRows } from './recompute.js';
import { distinctLabels } from './repeated.js';
import {
  allFailed,
  requestsFailed,
  info,
  notStreamed,
  type ResultFile,
  type ResultPoint,
  unknownClock,
} from './result-file.js';
import { readObjects } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/**
 * `python -m sglang.bench_serving --output-file`: one JSON object per line, written by Python with bare Infinity.
 * --output-details adds lists per request, in seconds.
 */
export const sglangImporter = resultsImporter({
  name: 'sglang-bench-serving',
  sniff: (firstBytes) =>
    // A SGLang server writes thousands of characters of `server_info` before the figures.
    (firstBytes.includes('"total_output_tokens_retokenized"') &&
      /"(?:mean|median)_ttft_ms"\s*:/.test(firstBytes)) ||
    (firstBytes.includes('"sharegpt_output_len"') && firstBytes.includes('"random_range_ratio"')),
  read: async (path) => parseSglang(await readObjects(path)),
});

/** These use SGLang's own protocol, in which every chunk has its token count and a gap is divided among its tokens. */
const nativeBackends = new Set(['sglang', 'sglang-native']);

function parseSglang(runs: readonly JsonObject[]): ResultFile {
  const issues: Issue[] = [];
  const labels = distinctLabels(runs.map(labelOf));
  return {
    tool: { name: 'sglang bench_serving', version: null },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: {},
    software: {
      benchmark_backend: textOf(runs[0]!['backend']),
      benchmark_dataset: textOf(runs[0]!['dataset_name']),
    },
    points: runs.map((run, index) => pointOf(run, labels[index]!, issues)),
    issues,
  };
}

function labelOf(run: JsonObject, index: number): string {
  const { request_rate: rate, max_concurrency: concurrency } = run;
  const parts = [
    typeof rate === 'number' || typeof rate === 'string' ? `rate ${String(rate)}` : null,
    typeof concurrency === 'number' ? `concurrency ${concurrency}` : null,
  ].filter((part) => part !== null);
  return parts.join(', ') || `run ${index}`;
}

const definitions = {
  e2e_latency: 'request sent to the last event of the stream, [DONE] and usage included',
  tpot: '(last event of the stream − first text) / (output tokens − 1)',
  itl: 'gap between chunks of any number of tokens',
  itl_retokenized: 'gap between chunks, divided among their tokens as counted by the local tokenizer',
  ttft: 'without streaming: the whole answer',
};

function pointOf(run: JsonObject, label: string, issues: Issue[]): ResultPoint {
  const list = metricList('sglang');
  const completed = numberOf(run['completed']);
  list.addCommon('duration', 'value', numberOf(run['duration']), { source: 'file: duration' });
  list.addCommon('completed', 'value', completed, { source: 'file: completed' });
  const native = nativeBackends.has(textOf(run['backend']) ?? '');
  const streamed = run['mean_ttft_ms'] !== run['mean_e2e_latency_ms'];
  const requests = requestsOf(run, native, streamed);
  const rows = requests ? requestRows(requests) : [];
  const failed = requests?.filter(({ failure }) => failure !== null).length ?? null;
  list.addCommon('failed', 'value', failed, { source: 'recomputed: requests with an error' });
  if (completed === 0) {
    issues.push(allFailed('sglang bench_serving', label));
    return { label, metrics: list.metrics, requests: rows, iterations: [] };
  }
  if (failed) issues.push(requestsFailed(label, failed));
  putTotals(run, list);
  // An answer without streaming has its usage.
  if (streamed && !native) issues.push(...requestedTokensIssue(run, label));
  for (const [key, value] of Object.entries(run)) {
    const match = /^(mean|median|std|max|p\d+)_(ttft|tpot|itl|e2e_latency)_ms$/.exec(key);
    if (!match) continue;
    const [, reported, metric] = match as unknown as [string, string, keyof typeof definitions];
    if (numberOf(run[`mean_${metric}_ms`]) === 0) continue;
    const statistic = reported === 'std' ? 'sd_population' : reported;
    const n = metric === 'ttft' || metric === 'e2e_latency' ? completed : null;
    const details = { n, source: `file: ${key}` };
    if (metric === 'ttft' && streamed) list.addCommon('ttft', statistic, value, details);
    else if (metric === 'itl' && native) list.addCommon('itl', statistic, value, details);
    else if (metric === 'itl' && isRetokenized(run))
      list.addOwn('itl', 'ms', definitions.itl_retokenized, statistic, value, details);
    else list.addOwn(metric, 'ms', definitions[metric], statistic, value, details);
  }
  if (!streamed) issues.push(notStreamed(label));
  if (requests) {
    recompute(requests, list);
    issues.push(...disagreements(list, label));
  }
  return { label, metrics: list.metrics, requests: rows, iterations: [] };
}

/** Whether gaps were divided among tokens: with a `sglang-oai` backend, if the server reports speculative decoding. */
function isRetokenized(run: JsonObject): boolean {
  return (numberOf(run['accept_length']) ?? 0) > 0 && (textOf(run['backend']) ?? '').startsWith('sglang-oai');
}

/**
 * OpenAI's protocol reports tokens in `usage`, which the tool does not request: if no chunk has it, the requested
 * output lengths are counted.
 */
function requestedTokensIssue(run: JsonObject, label: string): Issue[] {
  const [reportedTokens, retokenizedTokens] = [
    run['total_output_tokens'],
    run['total_output_tokens_retokenized'],
  ].map(numberOf);
  if (
    typeof reportedTokens !== 'number' ||
    typeof retokenizedTokens !== 'number' ||
    reportedTokens === retokenizedTokens
  )
    return [];
  const text = `${label}: ${reportedTokens} output tokens were counted, but the local tokenizer finds ${retokenizedTokens} in the texts: with this backend the tool counts requested tokens unless the server sends usage with each chunk.`;
  return [info('output_tokens_maybe_requested', text)];
}

function putTotals(run: JsonObject, list: MetricList): void {
  addServingTotals(list, run, 'total_throughput');
  const toolMetrics: [string, string, string][] = [
    ['input_throughput', 'tok/s', 'prompt tokens / duration'],
    [
      'total_output_tokens_retokenized',
      'tokens',
      'tokens of the generated texts, counted by the local tokenizer',
    ],
    ['concurrency', 'requests', 'sum of end-to-end latencies / duration'],
    ['max_output_tokens_per_s', 'tok/s', 'max chunks with text in one second of the run'],
    ['max_concurrent_requests', 'requests', 'max requests in flight in one second of the run'],
    ['request_goodput', 'req/s', "requests that met the run's own limits / duration"],
    ['slo_attainment', 'ratio', "share of all requests that met the run's own limits"],
    ['accept_length', 'tokens', 'accepted tokens per step of speculative decoding, from the server'],
  ];
  for (const [key, unit, definition] of toolMetrics) {
    list.addOwn(key, unit, definition, 'value', run[key], { source: `file: ${key}` });
  }
}

/**
 * Lists per request; null for a run without --output-details. With the native protocol the gaps cover all tokens, so
 * the last text is at TTFT + their sum; gaps of chunks cover the same time. Without streaming TTFT is the end of the
 * answer.
 */
function requestsOf(run: JsonObject, native: boolean, streamed: boolean): RequestSample[] | null {
  const ttfts = run['ttfts'];
  if (!Array.isArray(ttfts)) return null;
  const valueAt = (key: string, index: number): unknown => (run[key] as unknown[] | undefined)?.[index];
  return ttfts.map((value: unknown, index): RequestSample => {
    const ttft = numberOf(value) ?? 0;
    const error = textOf(valueAt('errors', index));
    const failed = error !== null || ttft === 0;
    const gaps = numbersOf(valueAt('itls', index)).map((gap) => gap * 1000);
    const output = numberOf(valueAt('output_lens', index));
    const perToken = streamed && (native || gaps.length + 1 === output);
    return {
      sent_ms: null,
      ttft_ms: failed || !streamed ? null : ttft * 1000,
      e2e_ms: failed ? null : gaps.reduce((sum, gap) => sum + gap, ttft * 1000),
      gaps_ms: !failed && perToken ? gaps : null,
      chunks: failed || native ? null : gaps.length + 1,
      input_tokens: numberOf(valueAt('input_lens', index)),
      output_tokens: failed ? null : output,
      failure: failed ? { status: 'failed', error } : null,
    };
  });
}
