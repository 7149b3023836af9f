import type { Issue } from '../../model/document.js';
import {
  type JsonObject,
  type MetricList,
  metricList,
  numberOf,
  objectOf,
  type CommonMetric,
  textOf,
  msPerUnit,
  realtimeNs,
} from './metric-list.js';
import {
  allFailed,
  requestsFailed,
  notStreamed,
  type ResultFile,
  unknownClock,
  unknownLoad,
  warning,
} from './result-file.js';
import { readObject, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/** AIPerf's `profile_export_aiperf.json`: metrics are keys with a value that has a unit; unset statistics are omitted. */
export const aiperfSummaryImporter = resultsImporter({
  name: 'aiperf-summary',
  sniff: (firstBytes) =>
    /^\s*\{/.test(firstBytes) &&
    !firstBytes.includes('"request_start_ns"') &&
    (firstBytes.includes('"aiperf_version"') ||
      /"(?:request_latency|request_throughput|time_to_first_token)"\s*:\s*\{\s*"unit"\s*:/.test(firstBytes)),
  read: async (path) => parseAiperfSummary(await readObject(path), path),
});

/**
 * AIPerf's names for metrics that inferscope defines the same way. Its inter_token_latency is one number per request:
 * TPOT.
 */
export const aiperfCommonNames: Record<string, CommonMetric> = {
  time_to_first_token: 'ttft',
  inter_token_latency: 'tpot',
  request_latency: 'e2e',
  request_throughput: 'request_throughput',
  output_token_throughput: 'output_throughput',
  total_token_throughput: 'total_throughput',
  benchmark_duration: 'duration',
  request_count: 'completed',
  error_request_count: 'failed',
  total_isl: 'input_tokens',
  total_osl: 'output_tokens',
};

const units: Record<string, string> = {
  'requests/sec': 'req/s',
  'tokens/sec': 'tok/s',
  'tokens/sec/user': 'tok/s/user',
  count: '',
};

/** Unit in which a metric of AIPerf is stored. */
export const unitOf = (unit: string): string => (msPerUnit(unit) === null ? (units[unit] ?? unit) : 'ms');

const meanings: Record<string, string> = {
  inter_chunk_latency: 'gap between chunks of any number of tokens',
  output_token_throughput_per_user: '1 / inter_token_latency of a request',
  time_to_second_token: 'first to second chunk with content',
  goodput: "req/s that met the run's own limits",
  // derived_latency.py: over all records, failed ones included.
  effective_latency: 'scheduled send time to the end of the request; includes failed requests',
  credit_to_start_latency: 'scheduled send time to the actual send; includes failed requests',
  completed_request_count: 'finished requests, failed ones included',
  time_to_first_output_token: 'request sent to the first content that is not reasoning',
  http_req_waiting: 'last byte of the request sent to the first of the answer',
  output_sequence_length: 'generated tokens per request, reasoning included',
  input_sequence_length: 'prompt tokens per request',
};

const statistics: Record<string, string> = { avg: 'mean', p50: 'median' };
const savedStatistic = /^(avg|min|max|std|sum|p\d+(?:\.\d+)?)$/;

function parseAiperfSummary(file: JsonObject, path: string): ResultFile {
  const issues: Issue[] = [];
  const list = metricList('aiperf');
  const label = loadOf(file);
  const streamed = objectOf(file['time_to_first_token']) !== null;
  for (const [name, value] of Object.entries(file)) {
    // These are zero for answers without streaming.
    if (streamed || !/^(effective|active)_(decode|prefill|total)_/.test(name))
      putMetric(list, name, objectOf(value));
  }
  if (list.metrics.length === 0) throw unreadable(path, 'It contains no metric with a unit.');
  const completed = list.metrics.find(({ name }) => name === 'completed');
  const errors = Array.isArray(file['error_summary']) ? file['error_summary'] : [];
  const failed = errors.reduce((sum: number, error) => sum + (numberOf(objectOf(error)?.['count']) ?? 0), 0);
  if (failed > 0) {
    if (!list.metrics.some(({ name }) => name === 'failed')) {
      list.addCommon('failed', 'value', failed, { source: 'file: error_summary' });
    }
    issues.push(requestsFailed('AIPerf', failed));
  }
  const hasLatency = list.metrics.some(({ name }) => name === 'e2e' || name === 'ttft');
  if ((completed?.value === 0 || !hasLatency) && failed > 0) issues.push(allFailed('AIPerf', label));
  if (!streamed && list.metrics.some(({ name }) => name === 'e2e')) issues.push(notStreamed('AIPerf'));
  if (file['was_cancelled'] === true) {
    issues.push(
      warning('benchmark_cancelled', 'AIPerf was cancelled: its numbers cover only part of the benchmark.'),
    );
  }
  const ownCount = numberOf(objectOf(file['total_osl'])?.['avg']);
  issues.push(
    ...tokenCountIssues(ownCount, numberOf(objectOf(file['total_usage_completion_tokens'])?.['avg'])),
  );
  gpuTelemetry(file, list);
  const start = Date.parse(textOf(file['start_time']) ?? '');
  return {
    tool: { name: 'aiperf', version: textOf(file['aiperf_version']) },
    realtime_zero_ns: realtimeNs(start * 1000),
    clock: unknownClock,
    hardware: {},
    software: { benchmark_model: modelOf(file) },
    points: [{ label, metrics: list.metrics, requests: [], iterations: [] }],
    issues,
  };
}

/** Without --use-server-token-count tokens are counted with the client's tokenizer; the server's usage can differ. */
export function tokenCountIssues(counted: number | null, usage: number | null): Issue[] {
  if (counted === null || usage === null || counted === usage) return [];
  const text = `AIPerf counted ${counted} output tokens, the server's usage reports ${usage}: token counts, TPOT and tokens/s use AIPerf's own tokenizer (--use-server-token-count uses the server's).`;
  return [warning('token_counts_differ', text)];
}

/**
 * Stores a metric, with times in ms (the duration of the run in s); tokens/sec and requests/sec are unchanged. `std` over requests is numpy's with
 * ddof 0 (metric_dicts.py of 0.3 to 0.13).
 */
export function putMetric(
  list: MetricList,
  name: string,
  metric: JsonObject | null,
  deviation = 'sd_population',
): void {
  const unit = textOf(metric?.['unit']);
  if (!metric || unit === null) return;
  const n = numberOf(metric['count']);
  const commonName = aiperfCommonNames[name];
  const factor = commonName === 'duration' ? (msPerUnit(unit) ?? 1000) / 1000 : (msPerUnit(unit) ?? 1);
  const isTotal = commonName !== undefined && !['ttft', 'tpot', 'e2e'].includes(commonName);
  for (const [key, value] of Object.entries(metric)) {
    if (!savedStatistic.test(key)) continue;
    const statisticName = key === 'std' ? deviation : (statistics[key] ?? key);
    const statistic = isTotal && key === 'avg' ? 'value' : statisticName;
    const number = numberOf(value);
    const details = { n, source: `file: ${name}.${key}` };
    const scaled = number === null ? null : number * factor;
    if (commonName && (!isTotal || key === 'avg')) list.addCommon(commonName, statistic, scaled, details);
    else if (!commonName) {
      list.addOwn(name, unitOf(unit), meanings[name] ?? null, statistic, scaled, details);
    }
  }
}

/** Its `std` has ddof 1 since 0.6 (telemetry_models.py). */
function gpuTelemetry(file: JsonObject, list: MetricList): void {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(textOf(file['aiperf_version']) ?? '') ?? [];
  const deviation = Number(major) > 0 || Number(minor) >= 6 ? 'sd' : 'sd_population';
  const endpoints = objectOf(objectOf(file['telemetry_data'])?.['endpoints']) ?? {};
  for (const endpoint of Object.values(endpoints)) {
    for (const [id, gpu] of Object.entries(objectOf(objectOf(endpoint)?.['gpus']) ?? {})) {
      const metrics = objectOf(objectOf(gpu)?.['metrics']) ?? objectOf(gpu) ?? {};
      for (const [name, metric] of Object.entries(metrics))
        putMetric(list, `${id}.${name}`, objectOf(metric), deviation);
    }
  }
}

/** "concurrency 2", "rate 8": the load of the measured phase. */
function loadOf(file: JsonObject): string {
  const config = objectOf(file['input_config']);
  const phases = Array.isArray(config?.['phases']) ? config['phases'].map(objectOf) : [];
  const measured = phases.find((phase) => phase?.['kind'] === 'profiling');
  // Before schema 1.4 (0.13) the load is in `loadgen`.
  const load = measured ?? objectOf(config?.['loadgen']);
  const rate = numberOf(load?.['rate']) ?? numberOf(load?.['request_rate']);
  const concurrency = numberOf(load?.['concurrency']);
  const parts = [
    ...(rate === null ? [] : [`rate ${rate}`]),
    ...(concurrency === null ? [] : [`concurrency ${concurrency}`]),
  ];
  return parts.join(', ') || unknownLoad;
}

function modelOf(file: JsonObject): string | null {
  const config = objectOf(file['input_config']);
  const names = objectOf(config?.['endpoint'])?.['model_names'];
  // Schema 1.4 (0.13) lists models separately.
  const items = objectOf(config?.['models'])?.['items'];
  const reported = Array.isArray(items) ? items.map((item) => objectOf(item)?.['name']) : names;
  return Array.isArray(reported)
    ? reported.filter((name) => typeof name === 'string').join(', ') || null
    : null;
}
