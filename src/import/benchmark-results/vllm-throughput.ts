import { type JsonObject, metricList, numberOf, textOf } from './metric-list.js';
import { info, type ResultFile, unknownClock } from './result-file.js';
import { readObjects } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/**
 * `vllm bench throughput --output-json`:
 * ```
 * {"elapsed_time": 12.3, "num_requests": 1000, "total_num_tokens": 160000, "requests_per_second": 81.3, "tokens_per_second": 13008.1}
 * ```
 */
export const vllmThroughputImporter = resultsImporter({
  name: 'vllm-bench-throughput',
  sniff: (firstBytes) =>
    /"elapsed_time"\s*:/.test(firstBytes) &&
    /"requests_per_second"\s*:/.test(firstBytes) &&
    /"tokens_per_second"\s*:/.test(firstBytes),
  read: async (path) => parseVllmThroughput(await readObjects(path)),
});

function parseVllmThroughput(runs: readonly JsonObject[]): ResultFile {
  const points = runs.map((run) => {
    const list = metricList('vllm');
    const field = (name: string) => ({ n: 1, source: `file: ${name}` });
    list.addCommon('duration', 'value', numberOf(run['elapsed_time']), field('elapsed_time'));
    list.addCommon('completed', 'value', numberOf(run['num_requests']), field('num_requests'));
    list.addCommon(
      'request_throughput',
      'value',
      numberOf(run['requests_per_second']),
      field('requests_per_second'),
    );
    list.addCommon(
      'total_throughput',
      'value',
      numberOf(run['tokens_per_second']),
      field('tokens_per_second'),
    );
    return { label: 'throughput', metrics: list.metrics, requests: [], iterations: [] };
  });
  return {
    tool: { name: 'vllm bench throughput', version: null },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: {},
    // Since 2026.
    software: { benchmark_model: textOf(runs[0]?.['model_id']) },
    points,
    issues: [
      info(
        'output_throughput_unknown',
        'vllm bench throughput counts prompt and generated tokens together: output tokens/s cannot be derived.',
      ),
    ],
  };
}
