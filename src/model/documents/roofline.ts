import { z } from 'zod';
import { type Document, documentSchema } from '../document.js';
import { type GpuRoofline, gpuRooflineSchema } from './gpu-roofline.js';

/** A measured compute peak of this machine. */
const computePeakSchema = z.object({
  dtype: z.string().describe('dtype the multiplication computes in.'),
  flops_per_s: z.number(),
  reached_by: z.string().describe('What reached it, e.g. MatMul 2048×2048×2048.'),
  runs: z.number().int(),
  sd_share: z.number(),
});

/** One point of the bandwidth curve: the fastest read kernel found at this working-set size. */
const bandwidthPointSchema = z.object({
  working_set_bytes: z.number(),
  bytes_per_s: z.number(),
  reached_by: z.string(),
  level: z.string().describe('Memory level that holds a working set of this size: L1, L2, L3 or DRAM.'),
  runs: z.number().int(),
  sd_share: z.number(),
});

/** Rate at which linear layers stream their weights in a format at a batch size: the main cost of a decode step. */
const weightStreamSchema = z.object({
  format: z.string(),
  batch_size: z.number().int().describe('Sequences multiplied with each weight.'),
  weights_per_s: z.number(),
  bytes_per_s: z.number(),
  reached_by: z.string(),
});

export const machineRooflineSchema = z.object({
  engine: z.string().describe('Engine the roofs were measured through, e.g. "onnxruntime 1.30.0 CPU".'),
  cpu_model: z.string(),
  threads: z.number().int(),
  measured_at: z.string(),
  seconds: z.number().describe('Duration of the measurement, s.'),
  other_processes_cores: z
    .number()
    .nullable()
    .default(null)
    .describe(
      'Cores that other processes used during it; null where that cannot be read. Roofs measured next to other work are too low.',
    ),
  compute: z.array(computePeakSchema),
  bandwidth: z.array(bandwidthPointSchema).describe('Read bandwidth by working-set size, ascending.'),
  weight_streams: z.array(weightStreamSchema),
  last_level_cache_bytes: z.number().nullable(),
  ridge_flop_per_byte: z.number().describe('float32 peak / DRAM read bandwidth, FLOP per byte.'),
});

export const rooflineVersion = '1.2';

/**
 * Roofline of the CPU or of the GPUs (1.1); the other is null. `cached` and `age_s` describe `roofline`;
 * `gpu_cached` and `gpu_age_s` describe `gpu`. An age is null without its roofline (1.2).
 */
export const rooflineDocumentSchema = documentSchema(
  'roofline',
  rooflineVersion,
  z.object({
    roofline: machineRooflineSchema.nullable(),
    cached: z.boolean(),
    age_s: z.number().nullable(),
    gpu: gpuRooflineSchema.nullable().default(null),
    gpu_cached: z.boolean().default(false),
    gpu_age_s: z.number().nullable().default(null),
  }),
);

export type MachineRoofline = z.infer<typeof machineRooflineSchema>;
export type WeightStream = z.infer<typeof weightStreamSchema>;
export type BandwidthPoint = z.infer<typeof bandwidthPointSchema>;
export type RooflineData = z.infer<typeof rooflineDocumentSchema>['data'];
/** A roofline document that includes GPUs. */
export type GpuRooflineDocument = Document<RooflineData & { gpu: GpuRoofline }>;
