import type { Issue } from '../../model/document.js';
import { putFigures, type Measured, putTotals } from './guidellm-figures.js';
import { measuredWindow, requestsOf } from './guidellm-requests.js';
import { type JsonObject, metricList, numberOf, objectOf, realtimeNs, textOf } from './metric-list.js';
import { disagreements, recompute, requestRows } from './recompute.js';
import {
  allFailed,
  requestsFailed,
  info,
  notStreamed,
  type ResultFile,
  type ResultPoint,
  warning,
} from './result-file.js';
import { readObject, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';
import { formatSetting, plural, formatQuantity } from '../../vocabulary/format.js';

/** GuideLLM's `benchmarks.json`: one benchmark per load point. A distribution with count 0 is filled with zeros. */
export const guidellmImporter = resultsImporter({
  name: 'guidellm',
  sniff: (firstBytes) =>
    /^\s*\{/.test(firstBytes) &&
    (firstBytes.includes('"guidellm_version"') ||
      (/"benchmarks"\s*:\s*\[/.test(firstBytes) &&
        /"generative_benchmark|"time_per_output_token_ms"/.test(firstBytes))),
  read: async (path) => parseGuidellm(await readObject(path), path),
});

function parseGuidellm(file: JsonObject, path: string): ResultFile {
  const benchmarks = Array.isArray(file['benchmarks']) ? file['benchmarks'].map(objectOf) : [];
  if (benchmarks.length === 0 || benchmarks.some((benchmark) => benchmark === null)) {
    throw unreadable(path, 'It has no "benchmarks".');
  }
  const objects = benchmarks as JsonObject[];
  const starts = objects.map(firstMoment).filter((start) => start !== null);
  const zero = starts.length > 0 ? Math.min(...starts) : null;
  const issues: Issue[] = [
    info(
      'percentiles_defined_otherwise',
      "GuideLLM's percentiles are not interpolated: they are stored as p90_step, p99_step, …",
    ),
  ];
  const metadata = objectOf(file['metadata']);
  return {
    tool: { name: 'guidellm', version: textOf(metadata?.['guidellm_version']) },
    realtime_zero_ns: zero === null ? null : realtimeNs(zero * 1e6),
    clock: { name: 'time.time()', resolution_ns: 1000, error_bound_ns: zero === null ? null : 1000 },
    hardware: {},
    software: {
      benchmark_platform: textOf(metadata?.['platform']),
      python: textOf(metadata?.['python_version']),
      ...backendOf(file),
    },
    points: objects.map((object, index) => pointOf(object, labelOf(object, index), zero, issues)),
    issues,
  };
}

/** The schema of 0.8 (metadata.version 2) records the backend; in earlier ones it is free text in `args`. */
function backendOf(file: JsonObject): Record<string, string | null> {
  const backend = objectOf(objectOf(objectOf(file['config'])?.['spec'])?.['backend']);
  if (!backend) return {};
  return {
    benchmark_model: textOf(backend['model']),
    benchmark_backend: textOf(backend['request_format']) ?? textOf(backend['kind']),
  };
}

/** `start_time` is the start of the measurement; with a warm-up, requests were sent before it. */
function firstMoment(benchmark: JsonObject): number | null {
  const scheduler = objectOf(benchmark['scheduler_metrics']);
  return numberOf(scheduler?.['request_start_time']) ?? numberOf(benchmark['start_time']);
}

function labelOf(benchmark: JsonObject, index: number): string {
  const strategy = objectOf(objectOf(benchmark['config'])?.['strategy']);
  const kind = textOf(strategy?.['type_']);
  const streams = numberOf(strategy?.['streams']) ?? numberOf(strategy?.['max_concurrency']);
  const rate = numberOf(strategy?.['rate']);
  if (kind === null) return `benchmark ${index}`;
  // A sweep's rates are fractions of the throughput run's rate.
  if (rate !== null) return `${kind} ${formatSetting(rate, 'req/s')}`;
  return streams === null || kind === 'synchronous' ? kind : `${kind} ${streams}`;
}

function pointOf(benchmark: JsonObject, label: string, zero: number | null, issues: Issue[]): ResultPoint {
  const list = metricList('guidellm');
  const metrics = objectOf(benchmark['metrics']) ?? {};
  const successful = (name: string) => objectOf(objectOf(metrics[name])?.['successful']);
  const counts = objectOf(metrics['request_totals']);
  const completed = numberOf(counts?.['successful']) ?? numberOf(successful('request_latency')?.['count']);
  const errored =
    numberOf(counts?.['errored']) ??
    numberOf(objectOf(objectOf(metrics['request_latency'])?.['errored'])?.['count']);
  list.addCommon('completed', 'value', completed, { source: 'file: metrics.request_totals.successful' });
  list.addCommon('failed', 'value', errored, { source: 'file: metrics.request_totals.errored' });
  const window = measuredWindow(benchmark);
  const requests = requestsOf(benchmark, zero, window);
  const duration = numberOf(benchmark['duration']);
  if (window === null) list.addCommon('duration', 'value', duration, { source: 'file: duration' });
  if (completed === 0) {
    issues.push(allFailed('GuideLLM', label));
    return { label, metrics: list.metrics, requests: requestRows(requests), iterations: [] };
  }
  const measured: Measured = { metrics, completed, duration: window === null ? duration : null };
  putFigures(measured, list);
  putTotals(measured, list);
  recompute(requests, list);
  issues.push(...exclusionIssues(label, requests, errored, window && duration));
  if (numberOf(successful('time_to_first_token_ms')?.['count']) === 0) issues.push(notStreamed(label));
  // The window splits requests: those in flight at its ends are in some of the tool's figures and not in others.
  if (window === null) issues.push(...disagreements(list, label));
  return { label, metrics: list.metrics, requests: requestRows(requests), iterations: [] };
}

function exclusionIssues(
  label: string,
  requests: ReturnType<typeof requestsOf>,
  errored: number | null,
  seconds: number | null,
): Issue[] {
  const issues: Issue[] = [];
  const cut = requests.filter(({ failure }) => failure?.status === 'incomplete').length;
  if (cut > 0) {
    const text = `${label}: ${plural(cut, 'request')} cut off by the end of the benchmark ${cut === 1 ? 'is' : 'are'} excluded from all latencies.`;
    issues.push(warning('requests_incomplete', text, cut));
  }
  const outside = requests.filter(({ failure, warmup }) => failure === null && warmup).length;
  if (seconds !== null) {
    const text = `${label}: ${plural(outside, 'request')} in warm-up or cool-down ${outside === 1 ? 'is' : 'are'} excluded from all figures; the measured window is ${formatQuantity(seconds, 's')}.`;
    issues.push(info('warmup_left_out', text));
  }
  if (errored) issues.push(requestsFailed(label, errored));
  return issues;
}
