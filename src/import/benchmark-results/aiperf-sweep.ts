import type { Issue } from '../../model/document.js';
import { aiperfCommonNames, putMetric, unitOf } from './aiperf-summary.js';
import {
  type JsonObject,
  type MetricList,
  metricList,
  numberOf,
  objectOf,
  textOf,
  msPerUnit,
} from './metric-list.js';
import { notStreamed, type ResultFile, type ResultPoint, unknownClock, warning } from './result-file.js';
import { readObject, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';
import { plural } from '../../vocabulary/format.js';

/**
 * AIPerf over several runs: `profile_export_aiperf_sweep.json`, an entry per combination of parameters, and
 * `profile_export_aiperf_aggregate.json`, one combination. Each number is the mean of its runs.
 */
export const aiperfSweepImporter = resultsImporter({
  name: 'aiperf-sweep',
  sniff: (firstBytes) => /"aggregation_type"\s*:\s*"(?:sweep|confidence)"/.test(firstBytes),
  read: async (path) => parseAiperfSweep(await readObject(path), path),
});

function parseAiperfSweep(file: JsonObject, path: string): ResultFile {
  const issues: Issue[] = [];
  const points = combinationsOf(file).map(({ label, metrics }) => pointOf(label, metrics, issues));
  if (!points.some(({ metrics }) => metrics.length > 0))
    throw unreadable(path, 'It contains no combination with a metric.');
  const failed = file['failed_runs'] ?? objectOf(file['metadata'])?.['failed_runs'];
  if (Array.isArray(failed) && failed.length > 0) {
    const text = `AIPerf: ${plural(failed.length, 'run')} failed and ${failed.length === 1 ? 'is' : 'are'} excluded from all numbers.`;
    issues.push(warning('benchmark_runs_failed', text, failed.length));
  }
  return {
    tool: { name: 'aiperf', version: textOf(file['aiperf_version']) },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: {},
    software: {},
    points,
    issues,
  };
}

function combinationsOf(file: JsonObject): { label: string; metrics: JsonObject }[] {
  const combinations = file['per_combination_metrics'];
  if (!Array.isArray(combinations)) return [{ label: 'all runs', metrics: objectOf(file['metrics']) ?? {} }];
  return combinations.map((combination: unknown, index) => ({
    label: labelOf(objectOf(objectOf(combination)?.['parameters']) ?? {}) || `combination ${index}`,
    metrics: objectOf(objectOf(combination)?.['metrics']) ?? {},
  }));
}

/** "concurrency 10, isl 512"; a dotted name such as phases.profiling.concurrency gives its last part. */
function labelOf(parameters: JsonObject): string {
  return Object.entries(parameters)
    .map(
      ([name, value]) =>
        `${name.split('.').at(-1)} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
    .join(', ');
}

/** `time_to_first_token_p99` is the p99 of each run; without a suffix it is the metric of the only run. */
const metricKey = /^(\w+)_(avg|min|max|std|p\d+(?:\.\d+)?)$/;

function pointOf(label: string, metrics: JsonObject, issues: Issue[]): ResultPoint {
  const list = metricList('aiperf');
  for (const [key, value] of Object.entries(metrics)) {
    const metric = objectOf(value);
    if (metric === null) continue;
    const [, name, statistic] = metricKey.exec(key) ?? [];
    if (name === undefined || statistic === undefined) {
      // One run has no deviation over runs, and this is not one over requests.
      putMetric(list, key, { ...metric, avg: metric['avg'] ?? metric['mean'], std: null });
      continue;
    }
    putMetric(list, name, { unit: metric['unit'], [statistic]: metric['mean'] });
    putSpread(list, { name, statistic, metric });
  }
  const has = (name: keyof typeof aiperfCommonNames) =>
    list.metrics.some((metric) => metric.name === aiperfCommonNames[name]);
  if (has('request_latency') && !has('time_to_first_token')) issues.push(notStreamed(`AIPerf, ${label}`));
  return { label, metrics: list.metrics, requests: [], iterations: [] };
}

/** Spread over the runs of a combination; empty for a single run. */
function putSpread(
  list: MetricList,
  { name, statistic, metric }: { name: string; statistic: string; metric: JsonObject },
): void {
  const [low, high] = [numberOf(metric['min']), numberOf(metric['max'])];
  if (low === null || high === null || low === high) return;
  const unit = textOf(metric['unit']) ?? '';
  const factor = msPerUnit(unit) ?? 1;
  for (const [key, statisticName] of [
    ['std', 'sd'],
    ['min', 'min'],
    ['max', 'max'],
  ] as const) {
    const value = numberOf(metric[key]);
    list.addOwn(
      `${name}_${statistic}_over_runs`,
      unitOf(unit),
      `${statistic} of each run, compared over the runs of this combination`,
      statisticName,
      value === null ? null : value * factor,
      { source: `file: ${name}_${statistic}.${key}` },
    );
  }
}
