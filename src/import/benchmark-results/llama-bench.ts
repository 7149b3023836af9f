import { type JsonObject, metricList, numberOf, numbersOf, realtimeNs, textOf } from './metric-list.js';
import { endToEnd, info, type ResultFile, type ResultPoint } from './result-file.js';
import { isTestTable, testsOf } from './llama-bench-text.js';
import { objectsOf, readText, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';

/** `llama-bench -o json` (an array of tests), `-o jsonl`, and, without the repeats, `-o csv` and `-o md` (the default). */
export const llamaBenchImporter = resultsImporter({
  name: 'llama-bench',
  sniff: (firstBytes) =>
    isTestTable(firstBytes) ||
    (/^\s*[[{]/.test(firstBytes) &&
      /"n_prompt"\s*:/.test(firstBytes) &&
      /"n_gen"\s*:/.test(firstBytes) &&
      /"avg_ts"\s*:/.test(firstBytes)),
  read: async (path) => {
    const text = await readText(path);
    return parseLlamaBench(isTestTable(text) ? testsOf(text, path) : objectsOf(text, path), path);
  },
});

const definitions = {
  prompt_processing: 'prompt tokens / time to evaluate them, without sampling (not TTFT)',
  text_generation:
    'tokens / time to evaluate them one by one, without sampling and without a prompt (not TPOT)',
  prompt_and_generation: 'prompt and generated tokens / time for both',
};

function parseLlamaBench(tests: readonly JsonObject[], path: string): ResultFile {
  const [first] = tests;
  const starts = tests.map((test) => Date.parse(textOf(test['test_time']) ?? ''));
  const zero = starts.every(Number.isFinite) ? Math.min(...starts) : null;
  const points = tests.map((test, i) => pointOf(test, zero === null ? 0 : (starts[i]! - zero) * 1e6, path));
  const commit = textOf(first!['build_commit']);
  return {
    tool: { name: 'llama-bench', version: commit && `${commit} (${String(first!['build_number'] ?? '')})` },
    realtime_zero_ns: zero === null ? null : realtimeNs(zero * 1000),
    clock: { name: 'test_time, s', resolution_ns: 1e9, error_bound_ns: zero === null ? null : 1e9 },
    hardware: { cpu_model: textOf(first!['cpu_info']), gpu_name: textOf(first!['gpu_info']) },
    software: {
      benchmark_model: textOf(first!['model_type']) ?? textOf(first!['model_filename']),
      benchmark_backend: textOf(first!['backends']),
      benchmark_threads: numberOf(first!['n_threads']),
      benchmark_gpu_layers: numberOf(first!['n_gpu_layers']),
    },
    points,
    issues: [
      points.some(({ iterations }) => iterations.length > 0)
        ? info(
            'moments_unknown',
            'llama-bench records the start of each test and the duration of its repeats: repeats were placed end to end.',
          )
        : info(
            'repeats_unknown',
            'This llama-bench output has mean and deviation but no repeats; -o json has them.',
          ),
    ],
  };
}

function pointOf(test: JsonObject, from: number, path: string): ResultPoint {
  const prompt = numberOf(test['n_prompt']) ?? 0;
  const generated = numberOf(test['n_gen']) ?? 0;
  const depth = numberOf(test['n_depth']) ?? 0;
  if (prompt === 0 && generated === 0) throw unreadable(path, 'A test has neither n_prompt nor n_gen.');
  const name =
    generated === 0 ? 'prompt_processing' : prompt === 0 ? 'text_generation' : 'prompt_and_generation';
  const testName = [prompt > 0 ? `pp${prompt}` : '', generated > 0 ? `tg${generated}` : '']
    .filter(Boolean)
    .join('+');
  const list = metricList('llama_bench');
  const rates = numbersOf(test['samples_ts']);
  const n = rates.length || null;
  const put = (statistic: string, value: unknown, source: string) =>
    list.addOwn(name, 'tok/s', definitions[name], statistic, value, { n, source });
  put('mean', test['avg_ts'], 'file: avg_ts');
  // It writes 0 for a single repeat; csv and md do not record the number of repeats.
  put('sd', n === 1 || (n === null && test['stddev_ts'] === 0) ? null : test['stddev_ts'], 'file: stddev_ts');
  const times = numbersOf(test['samples_ns']);
  return {
    label: depth > 0 ? `${testName} @ d${depth}` : testName,
    metrics: list.metrics,
    requests: [],
    iterations: endToEnd(times, { batch_size: 1, input_len: prompt, output_len: generated }, from),
  };
}
