import { z } from 'zod';
import { memoryEngines } from '../../llm/memory-request.js';

const count = z.number().int().positive();
/** One number or a list of them. */
const sizes = z.union([count, z.array(count).min(1)]);
const scalar = z.union([z.string(), z.number(), z.boolean()]);

/** An entry of `models:`; every combination of its lists is one run. */
export const modelEntrySchema = z.strictObject({
  model_id: z.string().min(1),
  input_lengths: sizes,
  output_lengths: sizes,
  batch_sizes: sizes,
  /** Required in container mode, unless --container names one for all. */
  container_name: z.string().min(1).optional(),
  dtype: z.string().nullish(),
  tensor_parallel_size: count.nullish(),
  quantization: z.string().nullish(),
  kv_cache_dtype: z.string().nullish(),
  model_params: z.union([z.number().positive(), z.string()]).nullish(),
  num_layers: count.nullish(),
  num_heads: count.nullish(),
  num_kv_heads: count.nullish(),
  head_dim: count.nullish(),
  hidden_size: count.nullish(),
  gpu_memory_utilization: z.number().gt(0).max(1).nullish(),
  max_model_len: count.nullish(),
});

/** Defaults of an entry, equal to those of `inferscope memory`. */
export const entryDefaults = {
  dtype: 'float16',
  tensor_parallel_size: 1,
  gpu_memory_utilization: 0.9,
} as const;

/** The file of `sweep --config`: models for memory profiles, or a command over a grid. */
export const sweepConfigSchema = z.strictObject({
  models: z.array(modelEntrySchema).min(1).optional(),
  /** container: in the container of each entry. */
  mode: z.enum(['host', 'container', 'url']).optional(),
  engine: z.enum(memoryEngines).optional(),
  engine_args: z.array(z.string()).optional(),
  device: z.string().optional(),
  weights: z.enum(['random', 'trained', 'load']).optional(),
  python: z.string().optional(),
  url: z.string().optional(),
  /** An inferscope command, e.g. "bench latency --model X". */
  command: z.union([z.string().min(1), z.array(z.string()).min(1)]).optional(),
  grid: z.record(z.string().regex(/^[A-Za-z][\w-]*$/), z.union([scalar, z.array(scalar).min(1)])).optional(),
  /** Seconds, or a duration such as 30m. */
  timeout: z.union([z.number().positive(), z.string()]).optional(),
  retries: z.number().int().nonnegative().optional(),
});

export type SweepConfig = z.infer<typeof sweepConfigSchema>;
export type ModelEntry = z.infer<typeof modelEntrySchema>;

/** Settings shared by all runs of a memory sweep. */
export interface MemoryTargets {
  mode: 'host' | 'container' | 'url';
  /** Container of entries without a container_name. */
  container: string | null;
  url: string | null;
  engine: string | null;
  engineArgs: readonly string[];
  device: string | null;
  weights: string | null;
  python: string | null;
}
