import { z } from 'zod';
import { figureSchema } from '../figure.js';
import { phaseKindSchema } from './trace-phase.js';
import { spreadSchema } from './trace-spread.js';

const count = z.number().int();

const launchPhaseSchema = z.object({
  kind: phaseKindSchema,
  instances: count,
  launches: z.number().describe('API calls that launched kernels, per instance.'),
  launches_min: z.number(),
  launches_max: z.number(),
  kernels: z.number(),
  graph_launches: z.number().describe('Launches of a whole CUDA graph, included in launches.'),
  kernels_per_layer: figureSchema.describe('Kernels / decoder layers of the model.'),
  launches_per_layer: figureSchema,
  api: spreadSchema.nullable().describe('Duration of the launching API calls.'),
  queue: spreadSchema
    .nullable()
    .describe(
      'Return of the API call to the start of the kernel, for kernels that start after it (nsys: queue time).',
    ),
});

/** One kernel's launches, as nsys's cuda_kern_exec_sum counts them. */
const launchKernelSchema = z.object({
  kernel: z.string(),
  short_name: z.string(),
  api_name: z.string().nullable(),
  count,
  total: spreadSchema.describe('Start of the call to the end of the later of the two.'),
  api: spreadSchema,
  queue: spreadSchema.nullable(),
  kernel_spread: spreadSchema,
});

export const launchesSchema = z.object({
  layers: figureSchema,
  phases: z.array(launchPhaseSchema),
  kernels: z.array(launchKernelSchema),
});

export type LaunchKernel = z.infer<typeof launchKernelSchema>;
export type Launches = z.infer<typeof launchesSchema>;
