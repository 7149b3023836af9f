import { z } from 'zod';
import { documentSchema } from '../document.js';
import { estimatedComponents } from '../memory-components.js';

const confidence = z.enum(['high', 'medium', 'low']);

const estimateLineSchema = z.object({
  component: z.enum(estimatedComponents),
  gpu_bytes: z.array(z.number()).describe('Per GPU, in order.'),
  bytes: z.number().describe('All GPUs together.'),
  formula: z.string(),
  confidence,
});

/** One combination of batch and lengths. */
const estimatePointSchema = z.object({
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  lines: z.array(estimateLineSchema),
  gpus: z.array(
    z.object({
      gpu: z.number().int(),
      pipeline_rank: z.number().int(),
      bytes: z.number().describe('At the peak; with vLLM on a known GPU it includes the whole KV pool.'),
      needed_bytes: z.number().describe("The minimum: with vLLM the batch's own cache instead of the pool."),
    }),
  ),
  total_bytes: z.number(),
  largest_gpu_bytes: z.number().describe('On the fullest GPU.'),
  needed_gpu_bytes: z.number(),
  peak: z.enum(['prefill', 'decode', 'startup']).describe('When the GPUs are fullest.'),
  kv_needed_bytes: z.number(),
  kv_pool: z
    .object({ tokens: z.number(), blocks: z.number().nullable(), concurrency: z.number() })
    .nullable()
    .describe(
      "What vLLM's KV pool holds on the GPU where it is smallest; null for other engines or an unknown GPU.",
    ),
  fits: z
    .boolean()
    .nullable()
    .describe(
      "Whether the engine starts and holds the batch: vLLM's pool must hold one sequence of max_model_len. Null if the GPU's memory is unknown.",
    ),
  largest: z
    .object({
      context_tokens: z.number().int().nullable(),
      batch_size: z.number().int().nullable(),
      concurrency: z.number().int().nullable(),
    })
    .describe(
      "The maximum of each with the others as requested; 0 if none fits, null if the GPU's memory is unknown.",
    ),
  would_fit: z
    .array(z.object({ change: z.string(), needed_gpu_bytes: z.number() }))
    .describe('Changes after which it fits; empty if it fits already.'),
});

export const estimateMemorySchema = z.object({
  engine: z.enum(['transformers', 'vllm', 'onnx']),
  gpu: z
    .object({
      name: z.string().nullable(),
      /** Memory that a process on it can allocate. */
      total_bytes: z.number().nullable(),
      source: z.string(),
    })
    .nullable(),
  gpu_memory_utilization: z.number().nullable(),
  max_model_len: z.number().int(),
  tensor_parallel_size: z.number().int(),
  pipeline_parallel_size: z.number().int(),
  expert_parallel_size: z.number().int(),
  gpu_count: z.number().int(),
  kv_cache_bytes_per_token_gpu: z.number().describe('Per token of one sequence, on the fullest GPU.'),
  points: z.array(estimatePointSchema),
});

/** `estimate --fits`: bundled models against one GPU. */
const estimateFitsSchema = z.object({
  gpu: z.object({ name: z.string().nullable(), total_bytes: z.number(), source: z.string() }),
  engine: z.enum(['transformers', 'vllm', 'onnx']),
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  models: z.array(
    z.object({
      model: z.string(),
      hub_id: z.string(),
      family: z.string(),
      parameters: z.number(),
      download_bytes: z.number().describe('Size of the files on the hub, in the published dtype.'),
      published_dtype: z.string(),
      gated: z.boolean().describe('Whether the hub asks for a login and an agreement first.'),
      formats: z
        .array(
          z.object({
            format: z.string(),
            weight_bytes: z.number(),
            kv_cache_bytes: z.number(),
            activation_bytes: z.number(),
            overhead_bytes: z.number(),
            needed_bytes: z.number(),
            fits: z.boolean().describe('With vLLM: with a max_model_len that its pool holds.'),
            largest_context_tokens: z
              .number()
              .int()
              .describe('Longest sequence at this batch size; 0 if none fits.'),
          }),
        )
        .describe('Weights + KV cache + activations + overhead.'),
    }),
  ),
});

export const estimateFitsDocumentSchema = documentSchema('estimate-fits', '1.0', estimateFitsSchema);

export type EstimatePoint = z.infer<typeof estimatePointSchema>;
export type EstimateMemory = z.infer<typeof estimateMemorySchema>;
export type EstimateFits = z.infer<typeof estimateFitsSchema>;
