import { containsNo } from '../trace-file-error.js';
import { stat } from 'node:fs/promises';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { VllmLogFact, VllmLogFacts, VllmRankFacts } from '../../model/vllm-log.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, Fact, ImportContext, Importer, ImportOutcome } from '../importer.js';
import { parseVllmLines } from './parse.js';
import { type ReadLog, readLog } from './read-log.js';
import { plural } from '../../vocabulary/format.js';
import type { IssueCode } from '../../model/issue-codes.js';

/** Sizes of a rank: the `kind` in the table `memory`, and its meaning. */
const sizes = {
  weights: 'loaded weights of the rank',
  non_torch: 'allocated outside PyTorch',
  activation_peak: 'peak of activations while the engine was profiled',
  torch_peak: 'peak of weights and activations together',
  consumed: 'weights and memory outside PyTorch together',
  kv_cache: 'KV cache of the rank',
  cuda_graphs: 'CUDA graphs, after capture',
  cuda_graphs_estimate: 'reserved for CUDA graphs before capture',
  device_total: 'memory of the GPU; of the memory node where vLLM computes on a CPU',
  device_free_at_start: 'free on the GPU when the engine started',
  device_used_at_start: 'in use on the GPU when the engine started',
  budget: 'share of the GPU that the engine may take (utilization × total)',
} satisfies Partial<Record<keyof VllmRankFacts, string>>;

/** vLLM's log format in every version, wherever the log starts: INFO 10-23 15:14:56 [gpu_worker.py:391]; up to 0.8 without the bracket. */
const logLine =
  /\b(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d (?:\[[^\]\n]+:\d+\]|[\w./]+\.py:\d+\])/;
/** Texts of vLLM in logs without levels and times. */
const vllmText =
  /Initializing an? (?:V[01] )?LLM engine|Model loading took [\d.]+ Gi?B|Loading model weights took [\d.]+ GB|[A-Z]+ KV cache size: [\d,]+ tokens|the current vLLM instance can use|vLLM API server version|Available KV cache memory: |set \([\d./]+\) GiB for KV cache|# \w+ blocks: \d+, # CPU blocks: /;

// Facts and load read the same file in sequence, so it is parsed once for both.
let lastRead: { key: string; log: ReadLog } | null = null;
async function readOnce(path: string, signal?: AbortSignal): Promise<ReadLog> {
  const stats = await stat(path).catch(() => null);
  const key = `${path}\n${stats?.size}\n${stats?.mtimeMs}`;
  if (lastRead?.key !== key) lastRead = { key, log: await readLog(path, signal) };
  return lastRead.log;
}

/**
 * The log of a vLLM engine or server: sizes of every rank into `memory` and `metrics`, a running server's statistics into
 * `telemetry`.
 */
export const vllmLogImporter = {
  name: 'vllm-log',
  sniff: (firstBytes) => logLine.test(firstBytes) || vllmText.test(firstBytes),
  async facts(path): Promise<CaptureFacts> {
    const facts = parseVllmLines((await readOnce(path)).lines);
    return {
      tool: { name: 'vLLM', version: facts.version?.value ?? null },
      realtime_zero_ns: null,
      command: null,
      hardware: {},
      software: softwareOf(facts),
      purpose: 'results',
    };
  },
  /** A server prints its arguments, including client keys. */
  async secrets(path): Promise<string[]> {
    const { lines } = await readOnce(path);
    const keys = /'?(?:api_key|hf_token|ssl_keyfile_password)'?(?:=|: )(\[[^\]]*\]|'[^']*'|[^\s,)}]+)/g;
    const values = lines.flatMap(({ text }) => [...text.matchAll(keys)].map((match) => match[1]!));
    return values
      .flatMap((value) => value.replaceAll(/[[\]'"]/g, '').split(/,\s*/))
      .filter((value) => value.length > 3 && value !== 'None' && value !== 'True');
  },
  async load(path, { sink }: Pick<ImportTarget, 'sink'>, context: ImportContext): Promise<ImportOutcome> {
    const { lines, seconds, stats } = await readOnce(path, context.signal);
    lastRead = null;
    const facts = parseVllmLines(lines);
    if (facts.reason !== null && stats.length === 0) throw noFigures(path, facts.reason);
    const { execution_id, capture_id, host } = context;
    const keys = { execution_id, capture_id, host };
    const redact = context.redact ?? ((text: string) => text);
    for (const rank of facts.ranks) {
      for (const row of memoryRows(rank)) {
        const t_ns = (seconds.get(row.line_number) ?? 0) * 1e9;
        const ids = { pid: rank.pid, rank: rank.rank, device: rank.rank };
        const place = { t_ns, kind: row.kind, bytes: row.bytes, point: null, source: redact(row.line) };
        sink.append('memory', { ...keys, ...ids, ...place });
      }
    }
    const metrics = [...engineMetrics(facts), ...facts.ranks.flatMap(rankMetrics)];
    for (const metric of metrics) {
      const metricFields = { pid: null, rank: 0, same_definition: false, statistic: 'value', n: null };
      sink.append('metrics', { ...keys, ...metricFields, ...metric, source: redact(metric.source) });
    }
    for (const { scope, values, seconds: loggedS } of stats) {
      const sampleFields = { pid: null, rank: 0, t_ns: loggedS * 1e9, scope };
      for (const [metric, value] of values)
        sink.append('telemetry', { ...keys, ...sampleFields, metric, value });
    }
    return {
      clock: { name: 'local time of the log, without year', resolution_ns: 1e9, error_bound_ns: null },
      issues: issuesOf(facts, redact),
    };
  },
} satisfies Importer;

function softwareOf(facts: VllmLogFacts): Record<string, Fact> {
  const reported = {
    vllm: facts.version,
    vllm_engine: facts.engine,
    vllm_model: facts.model,
    vllm_dtype: facts.dtype,
    vllm_kv_cache_dtype: facts.kv_cache_dtype,
    vllm_tensor_parallel_size: facts.tensor_parallel_size,
    vllm_pipeline_parallel_size: facts.pipeline_parallel_size,
    vllm_max_model_len: facts.max_model_len,
    vllm_gpu_memory_utilization: facts.gpu_memory_utilization,
    vllm_quantization: facts.quantization,
  };
  return Object.fromEntries(
    Object.entries(reported).flatMap(([name, fact]) => (fact === null ? [] : [[name, fact.value ?? 'none']])),
  );
}

function memoryRows(rank: VllmRankFacts) {
  return (Object.keys(sizes) as (keyof typeof sizes)[]).flatMap((kind) => {
    const size = rank[kind];
    return size === null ? [] : [{ kind, bytes: size.value, line: size.line, line_number: size.line_number }];
  });
}

type Metric = Required<Pick<Row<'metrics'>, 'point' | 'label' | 'name' | 'value' | 'unit' | 'definition'>> & {
  source: string;
};

/** @param index of the rank; point 0 is the engine */
function rankMetrics(rank: VllmRankFacts, index: number): Metric[] {
  const point = index + 1;
  const engine = rank.data_parallel_rank === 0 ? '' : `engine ${rank.data_parallel_rank}, `;
  const label = `${engine}rank ${rank.rank}`;
  const seconds = (name: string, definition: string, fact: VllmLogFact<number> | null): Metric[] =>
    fact === null
      ? []
      : [{ point, label, name, value: fact.value, unit: 's', definition, source: fact.line }];
  return [
    ...memoryRows(rank).map(({ kind, bytes, line }): Metric => ({
      point,
      label,
      name: `vllm.${kind}`,
      value: bytes / 2 ** 30,
      unit: 'GiB',
      definition:
        kind === 'activation_peak' && rank.activation_includes_graphs
          ? `${sizes[kind]}, including the reserve for CUDA graphs`
          : sizes[kind],
      source: line,
    })),
    ...seconds('vllm.load_time', 'loading the weights', rank.load_seconds),
    ...seconds('vllm.graph_capture_time', 'capturing CUDA graphs', rank.graph_capture_seconds),
  ];
}

function engineMetrics(facts: VllmLogFacts): Metric[] {
  const metricRow = (
    name: string,
    unit: string,
    definition: string,
    fact: VllmLogFact<number> | null,
  ): Metric[] =>
    fact === null
      ? []
      : [{ point: 0, label: 'engine', name, value: fact.value, unit, definition, source: fact.line }];
  const maxConcurrency = facts.max_concurrency;
  return [
    ...metricRow('vllm.kv_cache_tokens', 'tokens', 'tokens that the KV cache holds', facts.kv_cache_tokens),
    ...metricRow('vllm.kv_cache_blocks', 'blocks', 'blocks of the KV cache', facts.kv_cache_blocks),
    ...metricRow(
      'vllm.max_concurrency',
      'requests',
      `requests of ${plural(maxConcurrency?.value.tokens ?? 0, 'token')} that fit concurrently`,
      maxConcurrency && { ...maxConcurrency, value: maxConcurrency.value.requests },
    ),
    ...metricRow('vllm.init_time', 's', 'profiling, KV cache and warm-up of the engine', facts.init_seconds),
  ];
}

function issuesOf(facts: VllmLogFacts, redact: (text: string) => string): Issue[] {
  const issues: Issue[] = [];
  const add = (code: IssueCode, severity: Issue['severity'], text: string) =>
    issues.push({ code, severity, text: redact(text) });
  if (facts.starts > 1)
    add(
      'vllm_starts',
      'info',
      `The log contains ${facts.starts} engine starts; the last one with memory figures was used.`,
    );
  const unknown = (['version', 'model', 'dtype'] as const).filter((name) => facts[name] === null);
  if (facts.starts === 0 && unknown.length > 0)
    add(
      'vllm_no_start',
      'warning',
      `The log lacks the line with the engine's configuration, so these are unknown: ${unknown.join(', ')}.`,
    );
  if (facts.failure) add('vllm_refused', 'error', `vLLM failed: ${facts.failure.value}`);
  if (facts.ranks.some(({ rank_source }) => rank_source === 'order'))
    add('vllm_rank_order', 'info', 'The lines do not name ranks: processes were numbered in start order.');
  if (facts.reason !== null) add('vllm_no_memory', 'warning', facts.reason);
  return issues;
}

const noFigures = containsNo(
  'memory figures',
  'Keep the whole log, from the start of the engine: vllm serve … 2>&1 | tee vllm.log',
);
