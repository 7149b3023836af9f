import { type JsonObject, metricList, numberOf, numbersOf, objectOf, textOf } from './metric-list.js';
import { standardDeviation } from '../../model/statistics.js';
import { endToEnd, info, type ResultFile, unknownClock } from './result-file.js';
import { readObject, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/**
 * `vllm bench latency --output-json`: wall times of `llm.generate()` for one batch, seconds.
 * ```
 * {"avg_latency": 1.02, "latencies": [1.01, …], "percentiles": {"10": 1.0, "25": …, "99": 1.1}}
 * ```
 */
export const vllmLatencyImporter = resultsImporter({
  name: 'vllm-bench-latency',
  sniff: (firstBytes) => /"avg_latency"\s*:/.test(firstBytes) && /"latencies"\s*:/.test(firstBytes),
  read: async (path) => parseVllmLatency(await readObject(path), path),
});

const definition =
  'generate() of the whole batch on the host, prompts to last token; the file records neither batch size nor lengths';

function parseVllmLatency(object: JsonObject, path: string): ResultFile {
  const seconds = numbersOf(object['latencies']);
  if (seconds.length === 0) throw unreadable(path, '"latencies" is empty: no iteration was timed.');
  const list = metricList('vllm');
  const n = seconds.length;
  const put = (statistic: string, value: number | null, source: string) =>
    list.addOwn('batch_latency', 'ms', definition, statistic, value === null ? null : value * 1000, {
      n,
      source,
    });
  put('mean', numberOf(object['avg_latency']), 'file: avg_latency');
  for (const [share, value] of Object.entries(objectOf(object['percentiles']) ?? {})) {
    put(share === '50' ? 'median' : `p${share}`, numberOf(value), `file: percentiles.${share}`);
  }
  if (n > 1) put('sd', standardDeviation(seconds), `recomputed from ${n} iterations`);
  return {
    tool: { name: 'vllm bench latency', version: null },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: {},
    // Since 2026.
    software: { benchmark_model: textOf(object['model_id']) },
    points: [
      {
        label: 'latency',
        metrics: list.metrics,
        requests: [],
        iterations: endToEnd(
          seconds.map((value) => value * 1e9),
          {},
        ),
      },
    ],
    issues: [
      info(
        'moments_unknown',
        'vllm bench latency records the duration of each iteration, not its start: iterations were placed end to end.',
      ),
    ],
  };
}
