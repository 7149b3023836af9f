import type { Issue } from '../../model/document.js';
import {
  type JsonObject,
  type MetricList,
  metricList,
  numberOf,
  numbersOf,
  addServingTotals,
  textOf,
  realtimeNs,
} from './metric-list.js';
import { disagreements, recompute, type RequestSample, requestRows } from './recompute.js';
import { distinctLabels } from './repeated.js';
import {
  allFailed,
  requestsFailed,
  info,
  type ResultFile,
  type ResultPoint,
  unknownClock,
  warning,
} from './result-file.js';
import { readObjects } from './result-text.js';
import { resultsImporter } from './results-importer.js';
import { plural } from '../../vocabulary/format.js';

/**
 * `vllm bench serve --save-result` (also benchmark_serving.py), one JSON object, or one per line with --append-result.
 * --save-detailed adds lists per request, in seconds, including failures.
 */
export const vllmServeImporter = resultsImporter({
  name: 'vllm-bench-serve',
  sniff: (firstBytes) =>
    /"request_throughput"\s*:/.test(firstBytes) &&
    // Files of early 2025 that were reduced to their numbers have neither model nor backend.
    (/"(?:model_id|endpoint_type|backend)"\s*:/.test(firstBytes) ||
      (/"mean_ttft_ms"\s*:/.test(firstBytes) && /"completed"\s*:/.test(firstBytes))) &&
    !firstBytes.includes('"total_output_tokens_retokenized"'),
  read: async (path) => parseVllmServe(await readObjects(path)),
});

/** Backends of vLLM's client that stream completions: there every chunk with choices has a token. */
const completionBackends = new Set([
  'vllm',
  'openai',
  'lmdeploy',
  'scalellm',
  'sglang',
  'llama.cpp',
  'openai-completions',
]);

function parseVllmServe(runs: readonly JsonObject[]): ResultFile {
  const issues: Issue[] = [];
  const labels = distinctLabels(runs.map((run, index) => labelOf(run, index, runs.length)));
  const points = runs.map((run, index) => pointOf(run, labels[index]!, issues));
  const [first] = runs;
  const reported = startOf(first!);
  if (reported !== null) {
    issues.push(
      info(
        'results_local_time',
        'vllm bench serve records its end as local time without zone: the start was computed with the time zone of this machine and the duration.',
      ),
    );
  }
  return {
    tool: { name: 'vllm bench serve', version: null },
    realtime_zero_ns: reported,
    clock: { ...unknownClock, name: 'perf_counter', error_bound_ns: null },
    hardware: {},
    software: {
      benchmark_model: textOf(first!['model_id']),
      benchmark_backend: backendOf(first!),
      benchmark_dataset: textOf(first!['dataset_name']),
    },
    points,
    issues,
  };
}

const backendOf = (run: JsonObject): string | null => textOf(run['endpoint_type']) ?? textOf(run['backend']);

function labelOf(run: JsonObject, index: number, count: number): string {
  const rate = run['request_rate'];
  const parts = [
    typeof rate === 'number' || typeof rate === 'string' ? `rate ${String(rate)}` : null,
    typeof run['max_concurrency'] === 'number' ? `concurrency ${run['max_concurrency']}` : null,
  ].filter((part) => part !== null);
  return parts.join(', ') || (count > 1 ? `run ${index}` : 'serve');
}

/** "20260509-150232" is when the run ended, local time. */
function startOf(run: JsonObject): bigint | null {
  const match = /^(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})(\d{2})$/.exec(textOf(run['date']) ?? '');
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const end = new Date(year, month - 1, day, hour, minute, second).getTime();
  return realtimeNs(Math.round(end - (numberOf(run['duration']) ?? 0) * 1000) * 1000);
}

function pointOf(run: JsonObject, label: string, issues: Issue[]): ResultPoint {
  const list = metricList('vllm');
  const completed = numberOf(run['completed']);
  const failed = numberOf(run['failed']) ?? failedOf(run, completed);
  const field = (name: string, n: number | null = null) => ({ n, source: `file: ${name}` });
  list.addCommon('duration', 'value', numberOf(run['duration']), field('duration'));
  list.addCommon('completed', 'value', completed, field('completed'));
  list.addCommon(
    'failed',
    'value',
    failed,
    field(numberOf(run['failed']) === null ? 'num_prompts − completed' : 'failed'),
  );
  const requests = requestsOf(run);
  const rows = requests ? requestRows(requests) : [];
  if (completed === 0) {
    issues.push(allFailed('vllm bench serve', label));
    return { label, metrics: list.metrics, requests: rows, iterations: [] };
  }
  if (failed !== null && failed > 0) {
    issues.push(requestsFailed(label, failed));
  }
  putTotals(run, list);
  const everyChunkHasToken = completionBackends.has(backendOf(run) ?? '');
  putLatencies(run, list, { completed, everyChunkHasToken });
  const latencyCount = list.metrics.filter(({ unit }) => unit === 'ms').length;
  if (latencyCount === 0 && !requests) {
    issues.push(warning('no_latencies', `${label}: the file contains no latency in ms (mean_ttft_ms, …).`));
  } else if (!everyChunkHasToken) {
    issues.push(
      warning(
        'ttft_defined_otherwise',
        `${label}: with the backend ${backendOf(run) ?? 'that the file does not name'} vLLM's client timestamps the first chunk with choices, which may have a role and no text. Its TTFT and TPOT are stored as vllm.ttft and vllm.tpot.`,
      ),
    );
  }
  if (requests) {
    const gaps = everyChunkHasToken ? requests : requests.map(withoutFirstToken);
    recompute(gaps, list);
    issues.push(...chunkIssue(requests, label), ...disagreements(list, label));
  }
  return {
    label,
    metrics: list.metrics,
    requests: everyChunkHasToken ? rows : requestRows((requests ?? []).map(withoutFirstToken)),
    iterations: [],
  };
}

function failedOf(run: JsonObject, completed: number | null): number | null {
  const promptCount = numberOf(run['num_prompts']);
  return promptCount === null || completed === null ? null : promptCount - completed;
}

/** If the first chunk may have no text, only the end has inferscope's definition. */
function withoutFirstToken(request: RequestSample): RequestSample {
  return { ...request, ttft_ms: null, gaps_ms: null };
}

function putTotals(run: JsonObject, list: MetricList): void {
  addServingTotals(list, run, 'total_token_throughput');
  const toolMetrics: [string, string, string][] = [
    [
      'request_goodput',
      'req/s',
      "requests that met the run's own --goodput limits (not recorded in the file) / duration",
    ],
    ['max_output_tokens_per_s', 'tok/s', 'max tokens received in one second'],
    ['max_concurrent_requests', 'requests', 'max requests in flight in one second'],
  ];
  for (const [key, unit, definition] of toolMetrics) {
    // Versions of 2025 wrote "request_goodput:" with the colon.
    const value = numberOf(run[key]) ?? numberOf(run[`${key}:`]);
    list.addOwn(key, unit, definition, 'value', value, { source: `file: ${key}` });
  }
  for (const [key, value] of Object.entries(run)) {
    if (key.startsWith('spec_decode_')) {
      list.addOwn(key, '', "speculative decoding, from the server's counters", 'value', value, {
        source: `file: ${key}`,
      });
    }
  }
}

/** Since 2026, for runs with --max-concurrency: the client queues requests, and its other latencies start at the send. */
const clientQueueMetrics: Record<string, string> = {
  client_queue_time: "queue time in vLLM's client, from the scheduled arrival of a request until it was sent",
  e2el_including_client_queue:
    "scheduled arrival to the last chunk: end to end including the queue time in vLLM's client",
};

const chunkGap = 'gap between chunks of any number of tokens';
const firstChunk = 'request sent to the first chunk with choices, which may have a role and no text';

function putLatencies(
  run: JsonObject,
  list: MetricList,
  { completed, everyChunkHasToken }: { completed: number | null; everyChunkHasToken: boolean },
): void {
  for (const [key, value] of Object.entries(run)) {
    const match =
      /^(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el|client_queue_time|e2el_including_client_queue)_ms$/.exec(
        key,
      );
    if (!match) continue;
    const [, reported, metric] = match as unknown as [string, string, 'ttft' | 'tpot' | 'itl' | 'e2el'];
    const statistic = reported === 'std' ? 'sd_population' : reported;
    const queue = clientQueueMetrics[metric];
    if (queue !== undefined) {
      list.addOwn(metric, 'ms', queue, statistic, value, { n: completed, source: `file: ${key}` });
      continue;
    }
    // numpy's mean of no values is written as 0: no request had this metric.
    if (numberOf(run[`mean_${metric}_ms`]) === 0) continue;
    const n = metric === 'ttft' || metric === 'e2el' ? completed : null;
    const details = { n, source: `file: ${key}` };
    if (metric === 'e2el') list.addCommon('e2e', statistic, value, details);
    else if (metric === 'itl') list.addOwn('itl', 'ms', chunkGap, statistic, value, details);
    else if (everyChunkHasToken) list.addCommon(metric, statistic, value, details);
    else if (metric === 'ttft') list.addOwn('ttft', 'ms', firstChunk, statistic, value, details);
    else
      list.addOwn(
        'tpot',
        'ms',
        `(last chunk − first chunk with choices) / (output tokens − 1)`,
        statistic,
        value,
        details,
      );
  }
}

/** Lists per request; null for a run without --save-detailed. vLLM's e2e is TTFT plus the gaps after it. */
function requestsOf(run: JsonObject): RequestSample[] | null {
  const ttfts = run['ttfts'];
  if (!Array.isArray(ttfts)) return null;
  const valueAt = (key: string, index: number): unknown => (run[key] as unknown[] | undefined)?.[index];
  const starts = numbersOf(run['start_times']);
  const zero = starts.reduce((low, start) => Math.min(low, start), Infinity);
  return ttfts.map((ttft: unknown, index): RequestSample => {
    const gaps = numbersOf(valueAt('itls', index)).map((gap) => gap * 1000);
    const error = textOf(valueAt('errors', index));
    const output = numberOf(valueAt('output_lens', index));
    // A failed request has empty entries; before `errors` was written, only its zeros show the failure.
    const failed = error !== null || (numberOf(ttft) ?? 0) === 0;
    const start = numberOf(valueAt('start_times', index));
    const ttft_ms = failed ? null : (numberOf(ttft) ?? 0) * 1000;
    return {
      sent_ms: start === null ? null : (start - zero) * 1000,
      ttft_ms,
      e2e_ms: ttft_ms === null ? null : gaps.reduce((sum, gap) => sum + gap, ttft_ms),
      gaps_ms: !failed && output !== null && gaps.length === output - 1 ? gaps : null,
      chunks: failed ? null : gaps.length + 1,
      input_tokens: numberOf(valueAt('input_lens', index)),
      output_tokens: failed ? null : output,
      failure: failed ? { status: 'failed', error } : null,
    };
  });
}

/** If chunks are not single tokens, gaps of chunks do not describe tokens; TPOT is the metric to read. */
function chunkIssue(requests: readonly RequestSample[], label: string): Issue[] {
  const succeeded = requests.filter(({ failure }) => failure === null);
  const withoutGaps = succeeded.filter(({ gaps_ms }) => gaps_ms === null);
  if (withoutGaps.length === 0) return [];
  const chunks = succeeded.reduce((sum, sample) => sum + (sample.chunks ?? 0), 0);
  const tokens = succeeded.reduce((sum, sample) => sum + (sample.output_tokens ?? 0), 0);
  const text = `${label}: ${plural(chunks, 'chunk')} contain ${plural(tokens, 'token')}, so vllm.itl is the gap between chunks; use tpot instead.`;
  return [warning('chunk_is_not_token', text, withoutGaps.length)];
}
