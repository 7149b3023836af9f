import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

/** As in Nsight Compute's Speed Of Light section; balanced: one at 60 to 80 % and both within 10 percentage points. */
const bounds = ['compute', 'memory', 'latency', 'balanced'] as const;

const boundSchema = z.object({
  by: z.enum(bounds).nullable().describe('Null where a throughput was not collected.'),
  cause: z
    .enum(['near_peak', 'ahead', 'balanced', 'grid_too_small', 'low_throughput', 'not_collected'])
    .describe('near_peak: a side is at 80 % or more. grid_too_small: latency-bound with less than one wave.'),
  text: z.string().describe('The reason, with its numbers.'),
});

const occupancySchema = z.object({
  achieved: figureSchema.describe('Warps active / warps an SM can hold, while it was active, %.'),
  theoretical: figureSchema.describe('What registers, shared memory, block size, … allow, %.'),
  limits: z
    .array(z.object({ resource: z.string(), blocks: z.number() }))
    .describe('Blocks an SM could hold by each resource, the tightest first.'),
  limited_by: z
    .array(z.string())
    .describe('The tightest ones; empty at 100 % theoretical occupancy or when not collected.'),
});

const stallSchema = z.object({
  reason: z.string().describe("ncu's name for it: long_scoreboard, barrier, …"),
  share: z
    .number()
    .describe(
      'Share of the cycles between two instructions of a warp, 0 to 1; of the stall samples where `cycles` is null.',
    ),
  cycles: z
    .number()
    .nullable()
    .describe('Cycles per issued instruction; null where only stall samples were collected.'),
  meaning: z.string(),
});

const kernelRooflineSchema = z.object({
  flop: figureSchema.describe(
    'Floating-point operations per launch; flop_by_unit: by the unit that executed them.',
  ),
  flop_by_unit: z.array(z.object({ unit: z.enum(['tensor', 'fp64', 'fp32', 'fp16']), flop: figureSchema })),
  dram_bytes: figureSchema,
  arithmetic_intensity: figureSchema.describe('FLOP / DRAM byte.'),
  achieved_flops: figureSchema,
  peak_flops: figureSchema.describe(
    'Dense peak of the unit that executed most of the FLOP, at the clock of this run.',
  ),
  peak_dram_bandwidth: figureSchema,
  roof_flops: figureSchema.describe(
    'min(peak, intensity × bandwidth): what the roofline allows at this intensity.',
  ),
  roof_share: figureSchema.describe('achieved / roof, 0 to 1.'),
  roof_side: z
    .enum(['compute', 'memory'])
    .nullable()
    .describe('The roof that limits the kernel; null without a roof.'),
});

const kernelCountersSchema = z.object({
  execution_id: z.string(),
  capture_id: z.string(),
  name: z.string(),
  grid: z.string().nullable().describe("'x,y,z'"),
  block: z.string().nullable(),
  device: z.number().int().nullable(),
  launches: z.number().int().describe('Profiled launches; figures are means over them, with their spread.'),
  nvtx_paths: z
    .array(z.string())
    .describe('NVTX ranges they were launched in, outermost first, each path once (the first 20).'),
  stage: z
    .string()
    .nullable()
    .describe(
      'Stage that these ranges show (decode; "decode and prefill" for both); null where they show none.',
    ),
  duration_ns: figureSchema,
  total_duration_ns: figureSchema,
  bound: boundSchema,
  sm_throughput: figureSchema,
  memory_throughput: figureSchema,
  dram_throughput: figureSchema,
  l1_hit_rate: figureSchema,
  l2_hit_rate: figureSchema,
  occupancy: occupancySchema,
  registers_per_thread: figureSchema,
  shared_memory_per_block: figureSchema,
  waves: figureSchema,
  tensor_pipe: figureSchema.describe('Tensor pipe busy, % of the elapsed cycles.'),
  stalls: z.array(stallSchema).describe('Largest first, at most five.'),
  stalls_missing: z.string().nullable(),
  roofline: kernelRooflineSchema,
});

const launchSchema = z.object({
  kernel: z.number().int().describe('Index into `kernels`.'),
  launch_ordinal: z.number().int(),
  nvtx_path: z.string().nullable(),
  duration_ns: z.number().nullable(),
});

const countersResultSchema = z.object({
  devices: z.array(
    z.object({
      device: z.number().int().nullable(),
      compute_capability: z.string().nullable(),
      sm_count: z.number().nullable(),
    }),
  ),
  kernels: z
    .array(kernelCountersSchema)
    .describe('One per kernel name, grid and block, longest total time first.'),
  launches: z
    .array(launchSchema)
    .describe('Every profiled launch in the order of profiling, the first 2000.'),
  launches_total: z.number().int(),
});

export const countersDocumentSchema = documentSchema('counters', '1.0', countersResultSchema);

export type Bound = z.infer<typeof boundSchema>;
export type Occupancy = z.infer<typeof occupancySchema>;
export type Stall = z.infer<typeof stallSchema>;
export type KernelRoofline = z.infer<typeof kernelRooflineSchema>;
export type KernelCounters = z.infer<typeof kernelCountersSchema>;
export type CountersResult = z.infer<typeof countersResultSchema>;
