import type { MemoryPlan } from '../../model/memory-plan.js';
import type { MemoryRows, Sample, RecordedRow } from './rows.js';

export const mb = 1e6;
const second = 1e9;

/** A run of the tiny Llama: launched at 1 s, loaded by 2 s, warm at 4 s, ended at 6 s. */
export function planOf(change: Partial<MemoryPlan> = {}): MemoryPlan {
  return {
    v: 1,
    execution_id: 'memory',
    config: {
      model: 'tiny',
      input_len: 8,
      output_len: 4,
      batch_size: 2,
      dtype: 'float16',
      quantization: null,
      kv_cache_dtype: null,
      tensor_parallel_size: 1,
      gpu_memory_utilization: 0.9,
      max_model_len: null,
    },
    where: 'host',
    container_name: null,
    engine: 'transformers',
    given: {
      num_parameters: null,
      num_layers: null,
      num_heads: null,
      num_kv_heads: null,
      head_dim: null,
      hidden_size: null,
    },
    config_source: 'config',
    model_config: null,
    seed: 0,
    runs: 2,
    snapshot: false,
    timeout_s: null,
    timed_out: false,
    launch_ns: second,
    ended_ns: 6 * second,
    sampled_until_ns: 6.5 * second,
    phases: [{ phase: 'timed', t_ns: 4 * second }],
    sampler: { source: 'NVML', hz: 20, why: null },
    gpus: [0, 1].map((gpu) => ({ gpu, name: 'NVIDIA H200', total_bytes: 150e9 })),
    reachable_gpus: null,
    samples_here: true,
    own_pids: [100, 101],
    others_before: [],
    pid_namespace: 'initial',
    failure: null,
    ...change,
  };
}

/** Samples at whole seconds, MB. */
export function samples(atSeconds: Record<number, number>): Sample[] {
  const entries = Object.entries(atSeconds).sort(([a], [b]) => Number(a) - Number(b));
  return entries.map(([s, megabytes]) => ({
    t_ns: Number(s) * second,
    bytes: megabytes * mb,
  }));
}

export function memoryRow(kind: string, megabytes: number, change: Partial<RecordedRow> = {}): RecordedRow {
  const [what, stage, ...detail] = kind.split(':');
  return {
    device: 0,
    rank: 0,
    t_ns: 4 * second,
    what: what!,
    stage: stage ?? null,
    detail: detail.join(':') || null,
    bytes: megabytes * mb,
    point: null,
    source: 'test',
    blocks: null,
    ...change,
  };
}

/**
 * Torch's records for a GPU: 1000 MB of weights, 100 of workspace; prefill peaks at 1500 with 40 of cache, decode at
 * 1300 with 120; 1700 are reserved.
 */
export function torchRows(change: Partial<RecordedRow> = {}): RecordedRow[] {
  const lines: [string, number][] = [
    ['weights:load:float16', 990],
    ['weights:load:float32', 10],
    ['buffers:load:float32', 1],
    ['allocated:load', 1001],
    ['reserved:load', 1100],
    ['max_allocated:load', 1010],
    ['kv_cache:prefill:float16', 40],
    ['max_allocated:prefill', 1500],
    ['reserved:prefill', 1700],
    ['kv_cache:decode:float16', 120],
    ['max_allocated:decode', 1300],
    ['reserved:decode', 1700],
    ['allocated:post_warmup', 1100],
    ['reserved:post_warmup', 1700],
  ];
  return [
    ...lines.map(([kind, megabytes]) => memoryRow(kind, megabytes, change)),
    memoryRow('max_allocated', 1500, { point: 'peak', t_ns: 6 * second, ...change }),
    memoryRow('max_reserved', 1700, { point: 'peak', t_ns: 6 * second, ...change }),
  ];
}

export function rowsOf(change: Partial<MemoryRows> = {}): MemoryRows {
  return {
    used: new Map(),
    usedSource: 'GPU driver',
    processes: [],
    rss: [],
    file: [],
    anonymous: [],
    recorded: [],
    phases: [
      { label: 'load', start_ns: 1.2 * second, end_ns: 2 * second },
      { label: 'warm-up', start_ns: 2 * second, end_ns: 4 * second },
      { label: 'timed', start_ns: 4 * second, end_ns: 5.5 * second },
    ],
    ...change,
  };
}
