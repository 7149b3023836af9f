import { z } from 'zod';
import { memoryComponents } from '../memory-components.js';

/**
 * The memory profile, schema 2.0: names are fixed (jq lines of its users read them). Fields that end in _gb are 10^9
 * bytes, and the bytes stand beside them. Null is "not known", and `missing` says why, by path.
 */
const gb = z.number().nullable();
const bytes = z.number().nullable();
export const profileConfidences = ['high', 'medium', 'low', 'unknown'] as const;
const confidence = z.enum(profileConfidences);

export const gpuMemorySchema = z.looseObject({
  gpu: z.number().int(),
  name: z.string().nullable(),
  used_gb: gb,
  used_bytes: bytes,
  total_gb: gb,
  total_bytes: bytes,
});

export const memoryPointSchema = z.looseObject({
  /** Sum over the GPUs that the run used. */
  total_gb: gb,
  total_bytes: bytes,
  max_gb: gb,
  max_bytes: bytes.optional(),
  mean_gb: gb,
  mean_bytes: bytes.optional(),
  /** Over GPUs, of the population; 0 for one. */
  stddev_gb: gb,
  stddev_bytes: bytes.optional(),
  per_gpu_details: z.array(gpuMemorySchema),
  /** Seconds since sampling began; null where the point was not reached. */
  t_s: z.number().nullable(),
  /** Who measured it: nvml process, nvml device, rocm-smi, /proc/<pid>/status, … */
  source: z.string().nullable(),
});

export const memoryComponentSchema = z.looseObject({
  component: z.enum(memoryComponents),
  bytes: z.number(),
  gb: z.number(),
  confidence,
  /** What it rests on: a log line, an allocator statistic, a file header, a formula with its inputs. */
  evidence: z.array(z.string()),
  /** Whether anything measured it, or the calculator's formula replaces it; null in older files: not known. */
  basis: z.enum(['measured', 'formula']).nullish(),
  /** The calculator's figure for the same; null where it has none. */
  estimate_bytes: bytes,
});

export const memoryProfileSchema = z.looseObject({
  profiler_version: z.literal('2.0'),
  schema_version: z.literal('2.0'),
  units: z.object({ gb: z.literal('10^9 bytes') }),
  metadata: z.looseObject({
    /** ISO 8601. */
    timestamp: z.string(),
    session_id: z.string().nullable(),
    /** Inputs as asked for. */
    config: z.looseObject({
      model: z.string(),
      input_len: z.number().int(),
      output_len: z.number().int(),
      batch_size: z.number().int(),
      /** Null: a server's own, and nobody asked for another. */
      dtype: z.string().nullable(),
      quantization: z.string().nullable(),
      kv_cache_dtype: z.string().nullable(),
      tensor_parallel_size: z.number().int(),
      gpu_memory_utilization: z.number().nullable(),
      max_model_len: z.number().int().nullable(),
    }),
    where: z.enum(['host', 'container', 'url']),
    container_name: z.string().nullable(),
    /** measured: the whole run. partial: it ended early, points reached are kept. */
    status: z.enum(['measured', 'partial']),
    duration_s: z.number().nullable(),
    sampling: z.looseObject({ source: z.string(), samples: z.number().int(), hz: z.number().nullable() }),
    gpus: z.array(z.looseObject({ gpu: z.number().int(), name: z.string().nullable(), total_bytes: bytes })),
    /** Code and sentence of everything doubtful: other processes on the GPU, a lost sampler, … */
    issues: z.array(z.object({ code: z.string(), text: z.string() })),
  }),
  model_info: z.looseObject({
    name: z.string(),
    num_parameters: z.number().nullable(),
    num_layers: z.number().int().nullable(),
    dtype: z.string().nullable(),
    dtypes: z.looseObject({
      weights: z.string().nullable(),
      activations: z.string().nullable(),
      kv_cache: z.string().nullable(),
    }),
    num_heads: z.number().int().nullable(),
    num_kv_heads: z.number().int().nullable(),
    head_dim: z.number().int().nullable(),
    hidden_size: z.number().int().nullable(),
    quantization: z.string().nullable(),
    tensor_parallel_size: z.number().int(),
    /** config.json as the engine used it: what `validate` reckons from. */
    config: z.record(z.string(), z.unknown()).optional(),
    weights: z.enum(['random', 'trained', 'unknown']).optional(),
    /** Where each given dimension comes from: flag, config, preset, assumed. */
    sources: z.record(z.string(), z.string()),
    family: z.string().nullable(),
  }),
  /** Aliases that lines of users read: `.memory.total_gb` is memory_breakdown.total_measured_gb. */
  memory: z.looseObject({ total_gb: gb }).optional(),
  memory_measurements: z.looseObject({
    baseline: memoryPointSchema,
    post_warmup: memoryPointSchema,
    peak: memoryPointSchema,
    /** peak − baseline. */
    memory_increase_gb: gb,
    memory_increase_bytes: bytes,
    /** after warm-up − baseline: lazy allocation. */
    warmup_increase_gb: gb,
    warmup_increase_bytes: bytes,
    /** peak − after warm-up: growth. */
    growth_gb: gb,
    growth_bytes: bytes,
  }),
  memory_breakdown: z.looseObject({
    /** What the run itself took at the peak: peak − baseline, or the process's own use where the driver tells it. */
    total_measured_gb: gb,
    total_measured_bytes: bytes,
    /** own_processes: as the driver lists them; points: samples of the whole device or of the host's processes. */
    total_measured_basis: z.enum(['own_processes', 'points']).nullish(),
    model_weights_gb: gb,
    model_weights_bytes: bytes.optional(),
    kv_cache_gb: gb,
    kv_cache_bytes: bytes.optional(),
    activations_gb: gb,
    activations_bytes: bytes.optional(),
    framework_overhead_gb: gb,
    framework_overhead_bytes: bytes.optional(),
    /** Aliases of model_weights_gb, kv_cache_gb, activations_gb, framework_overhead_gb and confidence_levels.overall. */
    weights: gb.optional(),
    kv_cache: gb.optional(),
    activations: gb.optional(),
    overhead: gb.optional(),
    confidence: confidence.optional(),
    /** Measured − all components; negative is shown as it is. */
    residual_gb: gb,
    residual_bytes: bytes,
    confidence_levels: z.looseObject({
      overall: confidence,
      weights: confidence,
      kv_cache: confidence,
      activations: confidence,
      framework_overhead: confidence,
    }),
    /** Sum to total_measured_bytes with the residual. */
    components: z.array(memoryComponentSchema),
  }),
  latency_stats: z.looseObject({
    mean_latency_ms: z.number().nullable(),
    /** Output tokens a second. */
    tokens_per_second: z.number().nullable(),
    mean_ttft_ms: z.number().nullable(),
    mean_tpot_ms: z.number().nullable(),
    runs: z.number().int(),
  }),
  engine_metadata: z.looseObject({
    engine_version: z.string().nullable(),
    engine_type: z.string(),
    /** Engine arguments as it ran: mode, attn, … */
    engine_args: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
  }),
  /** Path of a null field → why it is not known. */
  missing: z.record(z.string(), z.string()),
});

/** The profile itself, of its file or of a document around it (`report --json`). */
export function profileInside(json: unknown): unknown {
  const data = (json as { data?: unknown } | null)?.data;
  const profile = (data as { profile?: unknown } | null | undefined)?.profile;
  return profile ?? json;
}

export type MemoryProfile = z.infer<typeof memoryProfileSchema>;
export type MemoryPoint = z.infer<typeof memoryPointSchema>;
export type MemoryComponent = z.infer<typeof memoryComponentSchema>;
export type GpuMemory = z.infer<typeof gpuMemorySchema>;
