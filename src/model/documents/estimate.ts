import { z } from 'zod';
import { opClasses } from '../classes.js';
import { documentSchema } from '../document.js';
import type { FigureRow } from '../figure-rows.js';
import { estimateMemorySchema } from './estimate-memory.js';

const sizes = z.object({
  parameters: z.number(),
  flops: z.number().describe('Matrix multiplications, 2 per multiply-add.'),
  weight_bytes: z.number(),
  kv_read_bytes: z.number(),
  kv_write_bytes: z.number(),
  activation_in_bytes: z.number(),
  activation_out_bytes: z.number(),
  bytes: z.number().describe('Sum of the bytes above: the minimum that must be moved.'),
});

export const estimateModuleSchema = sizes.extend({ module: z.string(), class: z.enum(opClasses) });

const estimateLayersSchema = z.object({
  phase: z.enum(['prefill', 'decode']),
  batch_size: z.number().int(),
  new_tokens: z.number().int().describe('Tokens computed per sequence.'),
  context_tokens: z.number().describe('Tokens per sequence that are already in the KV cache.'),
  groups: z
    .array(
      z.object({
        layers: z.array(z.number().int()),
        structure: z.string(),
        modules: z.array(estimateModuleSchema),
        total: sizes,
      }),
    )
    .describe('Layers of one structure, their modules summed over them.'),
  outside: z.array(estimateModuleSchema).describe('Embedding, final norm, lm_head, sampling.'),
  total: sizes,
});

const estimateSchema = z.object({
  model: z.object({
    name: z.string(),
    model_type: z.string(),
    family: z.string(),
    layers: z.number().int(),
    hidden_size: z.number().int(),
    vocab_size: z.number().int(),
  }),
  weight_format: z
    .string()
    .describe('dtype or quantization scheme, as asked for or as the config declares it.'),
  activation_dtype: z.string(),
  kv_cache_dtype: z.string(),
  parameters: z.object({
    total: z.number(),
    active: z
      .number()
      .describe('Parameters that one token uses: of the routed experts, only those that it is routed to.'),
    embedding: z.number(),
    lm_head: z.number().describe('0 when tied to the embedding.'),
  }),
  weight_bytes: z.number(),
  files: z
    .object({
      format: z.enum(['safetensors', 'gguf']),
      source: z.string(),
      bytes: z.number(),
      parameters: z.number().nullable(),
      tensors: z.number().int(),
      bytes_by_dtype: z.record(z.string(), z.number()),
      excluded: z.array(z.object({ what: z.string(), bytes: z.number() })),
    })
    .nullable()
    .describe(
      "The headers of the model's files, where they were read; null for presets and bare config files.",
    ),
  kv_cache_bytes_per_token: z
    .number()
    .describe(
      "All layers together, per token of each sequence; of an encoder-decoder model the decoder's tokens.",
    ),
  kv_cache_bytes_per_source_token: z
    .number()
    .optional()
    .describe('Encoder-decoder models: cache of all cross-attentions, per token of the source.'),
  layers: estimateLayersSchema.nullable().describe('null without --layers.'),
  memory: estimateMemorySchema.nullable().describe('Memory of a run; null with --layers.'),
});

export const estimateDocumentSchema = documentSchema('estimate', '1.2', estimateSchema);

export type EstimateResult = z.infer<typeof estimateSchema>;
export type EstimateLayers = z.infer<typeof estimateLayersSchema>;
export type EstimateSizes = z.infer<typeof sizes>;

/** Figures by point, with a label if there are several. */
export const estimateFigures = ({ weight_bytes, memory }: EstimateResult): FigureRow[] => {
  const points = memory?.points ?? [];
  return points.map((point) => ({
    label:
      points.length === 1
        ? null
        : `batch ${point.batch_size}, ${point.input_len} in + ${point.output_len} out`,
    values: {
      largest_gpu_gb: point.largest_gpu_bytes / 1e9,
      total_gb: point.total_bytes / 1e9,
      model_weights_gb: weight_bytes / 1e9,
      kv_cache_gb: point.kv_needed_bytes / 1e9,
      largest_batch_size: point.largest.batch_size,
      largest_context_tokens: point.largest.context_tokens,
    },
  }));
};
