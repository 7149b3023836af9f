import type { Issue } from '../../model/document.js';
import {
  type JsonObject,
  metricList,
  numberOf,
  numbersOf,
  objectOf,
  textOf,
  msPerUnit,
} from './metric-list.js';
import { summaryOf } from './recompute.js';
import { type ResultFile, type ResultPoint, unknownClock, warning } from './result-file.js';
import { readObject, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';
import { plural } from '../../vocabulary/format.js';

/** Stages in order; each kind of task and scenario starts with a different one. */
const stages = [
  'load',
  'load_model',
  'load_dataset',
  'prefill',
  'decode',
  'per_token',
  'forward',
  'call',
  'overall',
  'train',
  'warmup',
];

/** optimum-benchmark's `benchmark_report.json`, and `benchmark.json`, which has it together with the config. */
export const optimumImporter = resultsImporter({
  name: 'optimum-benchmark',
  sniff: (firstBytes) =>
    new RegExp(`^\\s*\\{\\s*"(?:${stages.join('|')})"\\s*:\\s*\\{\\s*"(?:memory|latency)"\\s*:`).test(
      firstBytes,
    ) ||
    (/^\s*\{\s*"config"\s*:/.test(firstBytes) && firstBytes.includes('optimum_benchmark_version')),
  read: async (path) => parseOptimum(await readObject(path), path),
});

const latencyDefinitions: Record<string, string> = {
  prefill: 'generate() called to the logits of the first token, whole batch, without sampling it',
  decode: 'logits of the first token to the last token, whole batch',
  per_token: 'time between two tokens of the batch',
  generate: 'generate() called to its return, whole batch',
  first_generate: 'the first call of generate(), whole batch',
  forward: 'one forward pass of the batch',
};

function parseOptimum(result: JsonObject, path: string): ResultFile {
  const report = objectOf(result['report']) ?? result;
  const config = objectOf(result['config']);
  const environment = objectOf(config?.['environment']);
  const backend = objectOf(config?.['backend']);
  const issues: Issue[] = [];
  const repeats = numberOf(objectOf(objectOf(report['decode'])?.['latency'])?.['count']);
  const points = Object.entries(report).flatMap(([stage, value]) => {
    const measured = objectOf(value);
    return measured ? [pointOf(stage, measured, repeats, issues)] : [];
  });
  if (points.every(({ metrics }) => metrics.length === 0)) {
    throw unreadable(path, 'None of its stages has a latency, memory, throughput or energy.');
  }
  return {
    tool: { name: 'optimum-benchmark', version: textOf(environment?.['optimum_benchmark_version']) },
    realtime_zero_ns: null,
    clock: unknownClock,
    hardware: environment
      ? { cpu_model: textOf(environment['cpu'])?.trim() ?? null, gpu_name: gpuOf(environment['gpu']) }
      : {},
    software: environment
      ? {
          torch: textOf(environment['torch_version']) ?? torchOf(backend),
          transformers: textOf(environment['transformers_version']),
          benchmark_backend: textOf(backend?.['name']),
          benchmark_model: textOf(backend?.['model']),
        }
      : {},
    points,
    issues,
  };
}

/** Names of all GPUs of the machine, usually of one kind. */
function gpuOf(names: unknown): string | null {
  const reported = Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  return [...new Set(reported)].join(', ') || null;
}

function torchOf(backend: JsonObject | null): string | null {
  return textOf(backend?.['name']) === 'pytorch' ? textOf(backend?.['version']) : null;
}

function pointOf(stage: string, measured: JsonObject, repeats: number | null, issues: Issue[]): ResultPoint {
  const list = metricList('optimum');
  const latency = objectOf(measured['latency']);
  const factor = msPerUnit(textOf(latency?.['unit']) ?? '');
  if (latency && factor !== null) {
    const definition = latencyDefinitions[stage] ?? `duration of ${stage}`;
    const values = numbersOf(latency['values']);
    const n = numberOf(latency['count']) ?? values.length;
    for (const [key, value] of Object.entries(latency)) {
      const statistic = key === 'p50' ? 'median' : key === 'stdev' ? 'sd_population' : key;
      if (!/^(mean|median|sd_population|p\d+)$/.test(statistic)) continue;
      // The deviation of a single value is unknown, not 0.
      if (statistic === 'sd_population' && n < 2) continue;
      const number = numberOf(value);
      list.addOwn(`${stage}_latency`, 'ms', definition, statistic, number === null ? null : number * factor, {
        n,
        source: `file: ${stage}.latency.${key}`,
      });
    }
    if (stage === 'per_token' && repeatsItself(values)) {
      const text =
        'per_token.latency repeats the tokens of earlier repeats after every repeat, and includes the time from the end of one repeat to the first token of the next (optimum-benchmark 0.6.0 and before): its figures overweight the first repeats.';
      issues.push(warning('per_token_repeated', text));
      recomputePerToken(values, repeats, definition, list, factor);
    }
  }
  otherMetrics(stage, measured, list);
  return { label: stage, metrics: list.metrics, requests: [], iterations: [] };
}

function otherMetrics(stage: string, measured: JsonObject, list: ReturnType<typeof metricList>): void {
  const memory = objectOf(measured['memory']);
  const bytes = { MB: 1e6, GB: 1e9, KB: 1e3, B: 1 }[textOf(memory?.['unit']) ?? ''];
  for (const [key, value] of Object.entries(memory ?? {})) {
    const number = numberOf(value);
    if (bytes === undefined || number === null) continue;
    list.addOwn(
      `${stage}_${key}`,
      'B',
      `${key.replaceAll('_', ' ')} during ${stage}`,
      'max',
      number * bytes,
      {
        source: `file: ${stage}.memory.${key}`,
      },
    );
  }
  for (const kind of ['throughput', 'efficiency'] as const) {
    const figures = objectOf(measured[kind]);
    list.addOwn(
      `${stage}_${kind}`,
      textOf(figures?.['unit']) ?? '',
      `${kind} of ${stage}, as computed by the tool`,
      'value',
      figures?.['value'],
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
    list.addOwn(`${stage}_energy_${key}`, 'J', `energy of ${key} during ${stage}`, 'value', number * joules, {
      source: `file: ${stage}.energy.${key}`,
    });
  }
}

/** Measured times do not repeat to the last digit, especially not two in a row. */
function repeatsItself(values: readonly number[]): boolean {
  const repeatIndex = values.indexOf(values[0]!, 1);
  return repeatIndex > 0 && repeatIndex + 1 < values.length && values[repeatIndex + 1] === values[1];
}

/**
 * Recomputes the latency per token with each token counted once. Repeat i of R lists the i·k − 1 gaps between all k·i tokens so far, so all lists together have
 * k·R(R+1)/2 − R entries. The last list has every gap, and every k-th of it is between two repeats. Writes nothing if
 * the count does not match: the repeats had different lengths.
 */
function recomputePerToken(
  values: readonly number[],
  repeats: number | null,
  definition: string,
  list: ReturnType<typeof metricList>,
  factor: number,
): void {
  if (repeats === null) return;
  const tokens = (values.length + repeats) / ((repeats * (repeats + 1)) / 2);
  if (!Number.isInteger(tokens) || tokens < 2) return;
  const last = values.slice(-(repeats * tokens - 1)).filter((_, i) => (i + 1) % tokens !== 0);
  const sorted = Float64Array.from(last, (value) => value * factor).sort();
  for (const [statistic, value] of summaryOf(sorted)) {
    list.addOwn('per_token_latency', 'ms', definition, statistic, value, {
      n: sorted.length,
      source: `recomputed from ${plural(sorted.length, 'token')}, each counted once`,
    });
  }
}
