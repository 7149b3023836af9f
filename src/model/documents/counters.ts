import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

/** By NVIDIA's own speed-of-light logic; balanced: both sides over 60 % and within 10 points. */
export const bounds = ['compute', 'memory', 'latency', 'balanced'] as const;

export const boundSchema = z.object({
  /** Null where a throughput was not collected. */
  by: z.enum(bounds).nullable(),
  /** near_peak: a side is at 80 % or more. grid_too_small: latency-bound with less than one wave. */
  cause: z.enum(['near_peak', 'ahead', 'balanced', 'grid_too_small', 'low_throughput', 'not_collected']),
  /** Why, in words with the numbers. */
  text: z.string(),
});

export const occupancySchema = z.object({
  /** Warps active / warps an SM can hold, while it was active, %. */
  achieved: figureSchema,
  /** What registers, shared memory, block size, … allow, %. */
  theoretical: figureSchema,
  /** Blocks an SM could hold by each resource, the tightest first. */
  limits: z.array(z.object({ resource: z.string(), blocks: z.number() })),
  /** The tightest ones; empty at 100 % theoretical occupancy or when not collected. */
  limited_by: z.array(z.string()),
});

export const stallSchema = z.object({
  /** ncu's name for it: long_scoreboard, barrier, … */
  reason: z.string(),
  /** Share of the cycles between two instructions of a warp, 0 to 1. */
  share: z.number(),
  /** Cycles of each instruction issued; null where only samples tell. */
  cycles: z.number().nullable(),
  meaning: z.string(),
});

export const kernelRooflineSchema = z.object({
  /** Floating-point operations of a launch, and by the unit that made them. */
  flop: figureSchema,
  flop_by_unit: z.array(z.object({ unit: z.enum(['tensor', 'fp64', 'fp32', 'fp16']), flop: figureSchema })),
  dram_bytes: figureSchema,
  /** FLOP / DRAM byte. */
  arithmetic_intensity: figureSchema,
  achieved_flops: figureSchema,
  /** Peak of the unit that made most of the FLOP, at the clock of this run, dense. */
  peak_flops: figureSchema,
  peak_dram_bandwidth: figureSchema,
  /** min(peak, intensity × bandwidth): what the roofline allows at this intensity. */
  roof_flops: figureSchema,
  /** achieved / roof, 0 to 1. */
  roof_share: figureSchema,
  /** Which side of the roof; null without an intensity. */
  roof_side: z.enum(['compute', 'memory']).nullable(),
});

export const kernelCountersSchema = z.object({
  execution_id: z.string(),
  capture_id: z.string(),
  name: z.string(),
  /** 'x,y,z' */
  grid: z.string().nullable(),
  block: z.string().nullable(),
  device: z.number().int().nullable(),
  /** Profiled launches; figures are means over them, with their spread. */
  launches: z.number().int(),
  /** NVTX ranges they were launched in, outermost first, each path once (the first 20). */
  nvtx_paths: z.array(z.string()),
  /** Phase they belong to, by these ranges (decode; "decode and prefill" for both); null where no range tells. */
  stage: z.string().nullable(),
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
  /** Tensor pipe busy, % of the elapsed cycles. */
  tensor_pipe: figureSchema,
  /** Largest first, at most five. */
  stalls: z.array(stallSchema),
  stalls_missing: z.string().nullable(),
  roofline: kernelRooflineSchema,
});

export const launchSchema = z.object({
  /** Index into `kernels`. */
  kernel: z.number().int(),
  launch_ordinal: z.number().int(),
  nvtx_path: z.string().nullable(),
  duration_ns: z.number().nullable(),
});

export const countersResultSchema = z.object({
  devices: z.array(
    z.object({
      device: z.number().int().nullable(),
      compute_capability: z.string().nullable(),
      sm_count: z.number().nullable(),
    }),
  ),
  /** A kernel name with a grid and block, by total time. */
  kernels: z.array(kernelCountersSchema),
  /** Every profiled launch in the order of profiling, the first 2000. */
  launches: z.array(launchSchema),
  launches_total: z.number().int(),
});

export const countersDocumentSchema = documentSchema('counters', '1.0', countersResultSchema);

export type Bound = z.infer<typeof boundSchema>;
export type Occupancy = z.infer<typeof occupancySchema>;
export type Stall = z.infer<typeof stallSchema>;
export type KernelRoofline = z.infer<typeof kernelRooflineSchema>;
export type KernelCounters = z.infer<typeof kernelCountersSchema>;
export type CountersResult = z.infer<typeof countersResultSchema>;
