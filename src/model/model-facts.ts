import { z } from 'zod';

/** Facts about a model at run time that are neither in its config nor in its weights. */
export const modelFactsSchema = z.object({
  class: z.string().nullable().default(null),
  attention: z
    .string()
    .nullable()
    .default(null)
    .describe('Attention implementation: sdpa, eager, flash_attention_2, …'),
  cache: z.string().nullable().default(null).describe('Class of the KV cache.'),
  stored_dtype: z
    .string()
    .nullable()
    .default(null)
    .describe('Dtype of the weights, if torch.autocast computes in another.'),
  device_map: z
    .record(z.string(), z.number().int())
    .nullable()
    .default(null)
    .describe('Modules by device, where they are on several or were placed by a map.'),
  adapters: z
    .object({
      kind: z.string(),
      layers: z.number().int(),
      ranks: z.array(z.number().int()),
      merged: z.number().int().describe('Layers with their adapter merged into the weight.'),
    })
    .nullable()
    .default(null),
  async_scheduling: z
    .boolean()
    .nullable()
    .default(null)
    .describe('Whether the engine schedules the next step while the device runs this one (vLLM).'),
  max_num_seqs: z
    .number()
    .int()
    .nullable()
    .default(null)
    .describe('Requests that the engine runs at once, at most (vLLM).'),
  padding_share: z
    .number()
    .nullable()
    .default(null)
    .describe('Share of the prompt positions that are padding; computed at import from the stage lines.'),
});

export const modelTensorSchema = z.object({
  path: z
    .string()
    .describe('Path of the linear layer, or of the parameter of another module; * stands for numbers.'),
  module: z.string().describe('Its class.'),
  type: z.string().nullable().describe('Class of a tensor that is not plain (quantized).'),
  shape: z.array(z.number().int()).describe('Linear layers: outputs, inputs.'),
  dtype: z.string(),
  bytes: z.number().describe('Bytes per tensor; 0 if it is shared with another.'),
  count: z.number().int(),
});

export type ModelTensor = z.infer<typeof modelTensorSchema>;
