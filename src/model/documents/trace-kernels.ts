import { z } from 'zod';
import { opClasses } from '../classes.js';
import { figureSchema } from '../figure.js';
import { phaseKindSchema } from './trace-phase.js';
import { spreadSchema } from './trace-spread.js';

const opClass = z.enum(opClasses);
const count = z.number().int();

const kernelPhaseSchema = z.object({
  kind: phaseKindSchema,
  count,
  total_ns: z.number(),
  per_instance: z.number().describe('Mean per instance of the stage.'),
  per_instance_ns: z.number(),
});

export const traceKernelSchema = spreadSchema.extend({
  name: z.string(),
  short_name: z.string(),
  class: opClass,
  tile: z.string().nullable(),
  dtype: z.string().nullable(),
  exclusive_ns: z.number(),
  share: z.number().describe("Share of all kernels' time."),
  phases: z.array(kernelPhaseSchema),
});

/** Kernel classes of one phase kind, or of the whole capture (null). */
export const phaseClassesSchema = z.object({
  kind: phaseKindSchema.nullable(),
  instances: count,
  rows: z.array(
    z.object({
      class: opClass,
      count,
      total_ns: z.number(),
      exclusive_ns: z.number(),
      share: z.number().describe('Share of the kernel time of this stage.'),
      per_instance: z.number(),
      per_instance_ns: z.number(),
    }),
  ),
});

export const traceCopySchema = spreadSchema.extend({
  kind: z.string().describe('HtoD, DtoH, DtoD, HtoH, PtoP, memset.'),
  memory: z
    .string()
    .nullable()
    .describe(
      "The host side's memory (pageable, pinned, managed), device where there is none; null where not recorded.",
    ),
  phase: phaseKindSchema.nullable().describe('null: whole capture.'),
  bytes: z.number(),
  exclusive_ns: z.number(),
  bandwidth_bytes_per_s: figureSchema.describe('bytes / total time.'),
});

export const apiCallSchema = spreadSchema.extend({
  name: z.string(),
  api: z.string().nullable(),
  share: z.number().describe("Share of all calls' time."),
});

export const shortKernelsSchema = z.object({
  threshold_ns: z.number(),
  phases: z.array(
    z.object({
      kind: phaseKindSchema.nullable(),
      kernels: count,
      short: count,
      count_share: z.number(),
      time_share: z.number(),
    }),
  ),
});

export type TraceKernel = z.infer<typeof traceKernelSchema>;
export type PhaseClasses = z.infer<typeof phaseClassesSchema>;
export type TraceCopy = z.infer<typeof traceCopySchema>;
export type ApiCall = z.infer<typeof apiCallSchema>;
export type ShortKernels = z.infer<typeof shortKernelsSchema>;
