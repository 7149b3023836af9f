import { z } from 'zod';
import { opClasses } from './classes.js';
import { gpuRooflineSchema } from './documents/gpu-roofline.js';

/** Parts of a workload that a user can give, by their names there. */
export const givenParts = ['model', 'dtype', 'batch_size', 'input_len'] as const;

export const contextSchema = z.object({
  model: z
    .object({ name: z.string(), config: z.record(z.string(), z.unknown()) })
    .optional()
    .describe('What ran, with its config.json.'),
  dtype: z.string().optional().describe('What the model computed in.'),
  batch_size: z.number().int().positive().optional(),
  input_len: z.number().int().positive().optional().describe('Prompt tokens per sequence.'),
  kernel_classes: z
    .record(z.string(), z.enum(opClasses))
    .optional()
    .describe('Classes of kernels without a known one, by their short name (1.2).'),
  roofline: gpuRooflineSchema.optional().describe('Measured peaks of the GPU that was recorded.'),
});

/** What a user states about a session's workload, replacing recorded values. */
export type Context = z.infer<typeof contextSchema>;
