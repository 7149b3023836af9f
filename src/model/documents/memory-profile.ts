import { z } from 'zod';
import { memoryComponents } from '../memory-components.js';
import type { FigureRow } from '../figure-rows.js';
import { codeSchema } from '../code-schema.js';
import type { IssueCode } from '../issue-codes.js';

/**
 * The memory profile, schema 2.0. Names are fixed, since users read them with jq. Fields ending in _gb are 10^9 bytes; the bytes have their
 * own field. Null means unknown, and `missing` gives the reason by path.
 */
const gb = z.number().nullable();
const bytes = z.number().nullable();
export const profileConfidences = ['high', 'medium', 'low', 'unknown'] as const;
const confidence = z.enum(profileConfidences);

const gpuMemorySchema = z.looseObject({
  gpu: z.number().int(),
  name: z.string().nullable(),
  used_gb: gb,
  used_bytes: bytes,
  total_gb: gb,
  total_bytes: bytes,
});

const memoryPointSchema = z.looseObject({
  total_gb: gb.describe('Sum over the GPUs that the run used.'),
  total_bytes: bytes,
  max_gb: gb,
  max_bytes: bytes.optional(),
  mean_gb: gb,
  mean_bytes: bytes.optional(),
  stddev_gb: gb.describe('Population standard deviation over the GPUs; 0 for one.'),
  stddev_bytes: bytes.optional(),
  per_gpu_details: z.array(gpuMemorySchema),
  t_s: z
    .number()
    .nullable()
    .describe('Seconds since sampling started; null where the point was not reached.'),
  source: z
    .string()
    .nullable()
    .describe('Who measured it: nvml process, nvml device, rocm-smi, /proc/<pid>/status, …'),
});

const memoryComponentSchema = z.looseObject({
  component: z.enum(memoryComponents),
  bytes: z.number(),
  gb: z.number(),
  confidence,
  evidence: z
    .array(z.string())
    .describe(
      'What it is based on: a log line, an allocator statistic, a file header, a formula with its inputs.',
    ),
  basis: z
    .enum(['measured', 'formula'])
    .nullish()
    .describe(
      "Whether anything measured it, or the estimate's formula replaces it; null in older files: not known.",
    ),
  estimate_bytes: bytes.describe('The estimate of the same; null without one.'),
});

export const memoryProfileSchema = z.looseObject({
  profiler_version: z.literal('2.0'),
  schema_version: z.literal('2.0'),
  units: z.object({ gb: z.literal('10^9 bytes') }),
  metadata: z.looseObject({
    timestamp: z.string().describe('ISO 8601.'),
    session_id: z.string().nullable(),
    config: z
      .looseObject({
        model: z.string(),
        input_len: z.number().int(),
        output_len: z.number().int(),
        batch_size: z.number().int(),
        dtype: z.string().nullable().describe('Null: the default of the server.'),
        quantization: z.string().nullable(),
        kv_cache_dtype: z.string().nullable(),
        tensor_parallel_size: z.number().int(),
        gpu_memory_utilization: z.number().nullable(),
        max_model_len: z.number().int().nullable(),
      })
      .describe('Inputs as asked for.'),
    where: z.enum(['host', 'container', 'url']),
    container_name: z.string().nullable(),
    status: z
      .enum(['measured', 'partial'])
      .describe('measured: the whole run. partial: it stopped early, points reached are saved.'),
    duration_s: z.number().nullable(),
    sampling: z.looseObject({ source: z.string(), samples: z.number().int(), hz: z.number().nullable() }),
    gpus: z.array(z.looseObject({ gpu: z.number().int(), name: z.string().nullable(), total_bytes: bytes })),
    issues: z
      .array(z.object({ code: codeSchema<IssueCode>(), text: z.string() }))
      .describe('Code and sentence of everything doubtful: other processes on the GPU, a lost sampler, …'),
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
    config: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('config.json as the engine used it: the input of `validate`.'),
    weights: z.enum(['random', 'trained', 'unknown']).optional(),
    sources: z
      .record(z.string(), z.string())
      .describe('Where each given dimension comes from: flag, config, preset, assumed.'),
    family: z.string().nullable(),
  }),
  memory: z
    .looseObject({ total_gb: gb })
    .optional()
    .describe('Aliases for jq commands of users: `.memory.total_gb` is memory_breakdown.total_measured_gb.'),
  memory_measurements: z.looseObject({
    baseline: memoryPointSchema,
    post_warmup: memoryPointSchema,
    peak: memoryPointSchema,
    memory_increase_gb: gb.describe('peak − baseline.'),
    memory_increase_bytes: bytes,
    warmup_increase_gb: gb.describe('after warm-up − baseline: lazy allocation.'),
    warmup_increase_bytes: bytes,
    growth_gb: gb.describe('peak − after warm-up: growth.'),
    growth_bytes: bytes,
  }),
  memory_breakdown: z.looseObject({
    total_measured_gb: gb.describe(
      "What the run itself took at the peak: peak − baseline; on a shared GPU, and for a running server, its processes' use as the driver lists it.",
    ),
    total_measured_bytes: bytes,
    total_measured_basis: z
      .enum(['own_processes', 'points'])
      .nullish()
      .describe(
        "own_processes: as the driver lists them; points: samples of the whole device or of the host's processes.",
      ),
    model_weights_gb: gb,
    model_weights_bytes: bytes.optional(),
    kv_cache_gb: gb,
    kv_cache_bytes: bytes.optional(),
    activations_gb: gb,
    activations_bytes: bytes.optional(),
    framework_overhead_gb: gb,
    framework_overhead_bytes: bytes.optional(),
    weights: gb
      .optional()
      .describe(
        'Aliases of model_weights_gb, kv_cache_gb, activations_gb, framework_overhead_gb and confidence_levels.overall.',
      ),
    kv_cache: gb.optional(),
    activations: gb.optional(),
    overhead: gb.optional(),
    confidence: confidence.optional(),
    residual_gb: gb.describe('Measured − all components; negative is shown as it is.'),
    residual_bytes: bytes,
    confidence_levels: z.looseObject({
      overall: confidence,
      weights: confidence,
      kv_cache: confidence,
      activations: confidence,
      framework_overhead: confidence,
    }),
    components: z.array(memoryComponentSchema).describe('Sum to total_measured_bytes with the residual.'),
  }),
  latency_stats: z.looseObject({
    mean_latency_ms: z.number().nullable(),
    tokens_per_second: z.number().nullable().describe('Output tokens per second.'),
    mean_ttft_ms: z.number().nullable(),
    mean_tpot_ms: z.number().nullable(),
    runs: z.number().int(),
  }),
  engine_metadata: z.looseObject({
    engine_version: z.string().nullable(),
    engine_type: z.string(),
    engine_args: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .optional()
      .describe('Engine arguments as it ran: mode, attn, …'),
  }),
  missing: z.record(z.string(), z.string()).describe('Path of a null field → why it is not known.'),
});

/** The profile in its own file, or inside a document (`report --json`). */
export function unwrapProfile(json: unknown): unknown {
  const data = (json as { data?: unknown } | null)?.data;
  const profile = (data as { profile?: unknown } | null | undefined)?.profile;
  return profile ?? json;
}

export type MemoryProfile = z.infer<typeof memoryProfileSchema>;
export type MemoryPoint = z.infer<typeof memoryPointSchema>;
export type MemoryComponent = z.infer<typeof memoryComponentSchema>;

/** Figures of a memory profile for tables over many profiles; names as in the profile. */
export function memoryFigures(profile: MemoryProfile): FigureRow[] {
  const { memory_measurements: points, memory_breakdown: parts, latency_stats: latency } = profile;
  return [
    {
      label: null,
      values: {
        baseline_gb: points.baseline.total_gb,
        post_warmup_gb: points.post_warmup.total_gb,
        peak_gb: points.peak.total_gb,
        memory_increase_gb: points.memory_increase_gb,
        peak_max_gb: points.peak.max_gb,
        peak_mean_gb: points.peak.mean_gb,
        peak_stddev_gb: points.peak.stddev_gb,
        total_measured_gb: parts.total_measured_gb,
        model_weights_gb: parts.model_weights_gb,
        kv_cache_gb: parts.kv_cache_gb,
        activations_gb: parts.activations_gb,
        framework_overhead_gb: parts.framework_overhead_gb,
        residual_gb: parts.residual_gb,
        mean_latency_ms: latency.mean_latency_ms,
        tokens_per_second: latency.tokens_per_second,
        mean_ttft_ms: latency.mean_ttft_ms,
        mean_tpot_ms: latency.mean_tpot_ms,
      },
    },
  ];
}
