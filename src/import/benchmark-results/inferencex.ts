import { type JsonObject, type MetricList, metricList, numberOf, textOf } from './metric-list.js';
import { type ResultFile, type ResultPoint, unknownClock } from './result-file.js';
import { readObjects } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/**
 * InferenceX (formerly InferenceMAX) `agg_*.json`, one configuration or an array of them. Its process_result.py makes it
 * from a serving benchmark: times in seconds, throughput divided by GPUs.
 */
export const inferencexImporter = resultsImporter({
  name: 'inferencex',
  sniff: (firstBytes) => /"tput_per_gpu"\s*:/.test(firstBytes) && /"(?:hw|conc)"\s*:/.test(firstBytes),
  read: async (path) => parseInferencex(await readObjects(path)),
});

/** The file does not name the client's backend: with chat completions the first chunk may have no text. */
const latencies: Record<string, readonly [name: string, definition: string]> = {
  ttft: [
    'ttft',
    "request sent to the first chunk that the benchmark's client received, which may have no text",
  ],
  tpot: ['tpot', '(last chunk − first chunk) / (output tokens − 1) per request'],
  itl: ['itl', 'gap between chunks of any number of tokens'],
};

const throughputs: Record<string, readonly [unit: string, definition: string]> = {
  tput_per_gpu: ['tok/s/GPU', 'prompt and generated tokens / duration / GPUs'],
  output_tput_per_gpu: [
    'tok/s/GPU',
    'generated tokens / duration / GPUs (decode GPUs where prefill has its own)',
  ],
  input_tput_per_gpu: [
    'tok/s/GPU',
    'prompt tokens / duration / GPUs (prefill GPUs where decode has its own)',
  ],
  total_tput_tps: ['tok/s', 'prompt and generated tokens / duration'],
  output_tput_tps: ['tok/s', 'generated tokens / duration'],
  input_tput_tps: ['tok/s', 'prompt tokens / duration'],
  avg_power_w: ['W', 'mean power per GPU under load'],
  joules_per_output_token: ['J', 'energy / generated tokens (decode GPUs only where prefill has its own)'],
  joules_per_input_token: ['J', 'energy of the prefill GPUs / prompt tokens'],
  joules_per_total_token: ['J', 'energy / prompt and generated tokens'],
};

function parseInferencex(runs: readonly JsonObject[]): ResultFile {
  const [first] = runs;
  return {
    tool: { name: 'inferencex', version: null },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: {},
    software: {
      benchmark_model: textOf(first!['model']),
      benchmark_backend: textOf(first!['framework']),
      benchmark_hardware: textOf(first!['hw']),
      benchmark_precision: textOf(first!['precision']),
    },
    points: runs.map((run) => pointOf(run, runs.length > 1)),
    issues: [],
  };
}

function pointOf(run: JsonObject, isOneOfSeveral: boolean): ResultPoint {
  const list = metricList('inferencex');
  for (const [key, value] of Object.entries(run)) {
    const [, statistic, metric] = /^(mean|median|std|min|max|p\d+(?:\.\d+)?)_(\w+)$/.exec(key) ?? [];
    if (statistic !== undefined && metric !== undefined)
      putLatency(run, list, { key, statistic, metric, value });
  }
  for (const [key, [unit, definition]] of Object.entries(throughputs))
    list.addOwn(key, unit, definition, 'value', numberOf(run[key]), { source: `file: ${key}` });
  list.addCommon('duration', 'value', run['duration_seconds'], { source: 'file: duration_seconds' });
  list.addCommon('completed', 'value', run['total_requests_completed'], {
    source: 'file: total_requests_completed',
  });
  return { label: labelOf(run, isOneOfSeveral), metrics: list.metrics, requests: [], iterations: [] };
}

function putLatency(
  run: JsonObject,
  list: MetricList,
  { key, statistic, metric, value }: { key: string; statistic: string; metric: string; value: unknown },
): void {
  const seconds = numberOf(value);
  if (seconds === null) return;
  const statisticName = statistic === 'std' ? 'sd_population' : statistic;
  const details = { source: `file: ${key}` };
  const latency = latencies[metric];
  if (metric === 'e2el') list.addCommon('e2e', statisticName, seconds * 1000, details);
  else if (latency) list.addOwn(latency[0], 'ms', latency[1], statisticName, seconds * 1000, details);
  else if (metric === 'intvty' && !isInverseDeviation(run, statistic, seconds))
    list.addOwn(
      'intvty',
      'tok/s/user',
      'interactivity: 1 / TPOT of the same statistic, so its p99 describes the slow requests',
      statisticName,
      seconds,
      details,
    );
}

/** process_result.py also divides 1 by the standard deviation of TPOT, which is meaningless. */
function isInverseDeviation(run: JsonObject, statistic: string, value: number): boolean {
  const deviation = numberOf(run['std_tpot']);
  return statistic === 'std' && deviation !== null && Math.abs(value * deviation - 1) < 1e-6;
}

function labelOf(run: JsonObject, isOneOfSeveral: boolean): string {
  const part = (key: string, before = '', after = '') =>
    typeof run[key] === 'number' || typeof run[key] === 'string' ? `${before}${run[key]}${after}` : null;
  const parts = [
    ...(isOneOfSeveral ? [part('hw'), part('model'), part('framework'), part('precision')] : []),
    part('tp', 'tp '),
    part('isl', '', ' in'),
    part('osl', '', ' out'),
    part('conc', 'concurrency '),
  ];
  return parts.filter((part) => part !== null).join(', ');
}
