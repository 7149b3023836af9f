import type { Issue } from '../../model/document.js';
import { type JsonObject, metricList, numberOf, numbersOf, objectOf, textOf, toMs } from './metric-list.js';
import { type ResultFile, type ResultPoint, unknownClock, warning } from './result-file.js';
import { readObjects, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';

const stages = ['load', 'load_model', 'prefill', 'decode', 'per_token', 'forward', 'call', 'train', 'warmup'];

/** optimum-benchmark's `benchmark_report.json`, and `benchmark.json`, which holds it beside the config. */
export const optimumImporter = resultsImporter({
  name: 'optimum-benchmark',
  sniff: (firstBytes) =>
    new RegExp(`^\\s*\\{\\s*"(?:${stages.join('|')})"\\s*:\\s*\\{\\s*"(?:memory|latency)"\\s*:`).test(
      firstBytes,
    ) ||
    (/^\s*\{\s*"config"\s*:/.test(firstBytes) && firstBytes.includes('optimum_benchmark_version')),
  read: async (path) => {
    const [one] = await readObjects(path);
    return optimum(one!, path);
  },
});

const latencyDefinitions: Record<string, string> = {
  prefill: 'generate() called to the logits of the first token, whole batch, without sampling it',
  decode: 'logits of the first token to the last token, whole batch',
  per_token: 'time between two tokens of the batch',
  forward: 'one forward pass of the batch',
};

export function optimum(whole: JsonObject, path: string): ResultFile {
  const report = objectOf(whole['report']) ?? whole;
  const environment = objectOf(objectOf(whole['config'])?.['environment']);
  const issues: Issue[] = [];
  const points = Object.entries(report).flatMap(([stage, value]) => {
    const measured = objectOf(value);
    return measured ? [pointOf(stage, measured, issues)] : [];
  });
  if (points.every(({ metrics }) => metrics.length === 0)) {
    throw unreadable(path, 'No stage of the report has a latency, memory, throughput or energy.');
  }
  return {
    tool: { name: 'optimum-benchmark', version: textOf(environment?.['optimum_benchmark_version']) },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: environment ? { cpu_model: textOf(environment['cpu']) } : {},
    software: environment
      ? {
          torch: textOf(environment['torch_version']),
          transformers: textOf(environment['transformers_version']),
        }
      : {},
    points,
    issues,
  };
}

function pointOf(stage: string, measured: JsonObject, issues: Issue[]): ResultPoint {
  const list = metricList('optimum');
  const latency = objectOf(measured['latency']);
  const factor = toMs(textOf(latency?.['unit']) ?? '');
  if (latency && factor !== null) {
    const definition = latencyDefinitions[stage] ?? `duration of ${stage}`;
    const values = numbersOf(latency['values']);
    const n = numberOf(latency['count']) ?? values.length;
    for (const [key, value] of Object.entries(latency)) {
      const statistic = key === 'p50' ? 'median' : key === 'stdev' ? 'sd_population' : key;
      if (!/^(mean|median|sd_population|p\d+)$/.test(statistic)) continue;
      // The deviation of one value is not 0 but unknown.
      if (statistic === 'sd_population' && n < 2) continue;
      const number = numberOf(value);
      list.own(`${stage}_latency`, 'ms', definition, statistic, number === null ? null : number * factor, {
        n,
        source: `file: ${stage}.latency.${key}`,
      });
    }
    if (stage === 'per_token' && repeatsItself(values)) {
      issues.push(
        warning(
          'per_token_repeated',
          'per_token.latency lists earlier repeats again after every repeat (a fault of older optimum-benchmark versions): its count and percentiles weigh the first repeats more.',
        ),
      );
    }
  }
  others(stage, measured, list);
  return { label: stage, metrics: list.metrics, requests: [], iterations: [] };
}

function others(stage: string, measured: JsonObject, list: ReturnType<typeof metricList>): void {
  const memory = objectOf(measured['memory']);
  const bytes = { MB: 1e6, GB: 1e9, KB: 1e3, B: 1 }[textOf(memory?.['unit']) ?? ''];
  for (const [key, value] of Object.entries(memory ?? {})) {
    const number = numberOf(value);
    if (bytes === undefined || number === null) continue;
    list.own(`${stage}_${key}`, 'B', `${key.replaceAll('_', ' ')} during ${stage}`, 'max', number * bytes, {
      source: `file: ${stage}.memory.${key}`,
    });
  }
  for (const kind of ['throughput', 'efficiency'] as const) {
    const one = objectOf(measured[kind]);
    list.own(
      `${stage}_${kind}`,
      textOf(one?.['unit']) ?? '',
      `${kind} of ${stage}, as the tool computes it`,
      'value',
      one?.['value'],
      {
        source: `file: ${stage}.${kind}`,
      },
    );
  }
  const energy = objectOf(measured['energy']);
  const joules = { kWh: 3.6e6, J: 1 }[textOf(energy?.['unit']) ?? ''];
  for (const [key, value] of Object.entries(energy ?? {})) {
    const number = numberOf(value);
    if (joules === undefined || number === null) continue;
    list.own(`${stage}_energy_${key}`, 'J', `energy of ${key} during ${stage}`, 'value', number * joules, {
      source: `file: ${stage}.energy.${key}`,
    });
  }
}

/** Times of a clock do not come again to the last digit, let alone two in a row. */
function repeatsItself(values: readonly number[]): boolean {
  const again = values.indexOf(values[0]!, 1);
  return again > 0 && again + 1 < values.length && values[again + 1] === values[1];
}
