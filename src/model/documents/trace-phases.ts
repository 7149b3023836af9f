import { z } from 'zod';
import { figureSchema } from '../figure.js';
import { phaseKindSchema } from './trace-phase.js';
import { spreadSchema } from './trace-spread.js';

const count = z.number().int();

/** Device activity, ns. busy + idle is: in a mean instance `clean_ms` if there is one, else `wall`; in a row `wall_ns`. */
const splitFields = {
  busy_ns: z.number(),
  /** Kernels without communication. */
  compute_ns: z.number(),
  exposed_comm_ns: z.number(),
  exposed_copy_ns: z.number(),
  idle_ns: z.number(),
  /** Share of busy + idle, 0 to 1. */
  idle_share: z.number(),
};

const causeSchema = z.object({
  id: z
    .string()
    .describe(
      'Bar id of the waterfall: synchronization, host, launch_overhead, launch_latency, device_dependency, unattributed; host.start_up, host.shut_down: before the first device activity of the capture, and after the last.',
    ),
  ns: z.number(),
  share: z.number().describe('Share of the same time as idle_share.'),
});

const phaseInstanceSchema = z.object({
  stage_id: count,
  label: z.string(),
  iteration: count.nullable(),
  step_index: count.nullable(),
  start_ns: z.number(),
  wall_ns: z.number(),
  ...splitFields,
  kernels: count,
  copies: count,
});

/** All instances of one kind on the analyzed rank and device; figures are per mean instance, and idle time excludes profiler overhead. */
export const tracePhaseSchema = z.object({
  kind: phaseKindSchema,
  instances: count,
  wall: spreadSchema.describe(
    'Window of an instance: decode steps run from start to start of the next (docs/concepts/stages-and-clocks.md).',
  ),
  clock: z
    .enum(['host', 'device'])
    .describe(
      'host: ranges of the program, which waits for the device in every step. device: first activity to first activity.',
    ),
  clock_why: z.string(),
  clean_ms: figureSchema.describe('`wall` without a profiler.'),
  ...splitFields,
  idle_by_cause: z.array(causeSchema),
  main_cause: z.string().nullable().describe('Largest part of idle_by_cause; null if that is empty.'),
  kernels: z.number().describe('Mean per instance.'),
  copies: z.number(),
  launches: z.number().describe('API calls that launched kernels; fewer than kernels with CUDA graphs.'),
  kernel_ns: z.number().describe('Σ durations of its kernels.'),
  by_batch: z
    .array(
      z.object({
        batch_size: count,
        wall: spreadSchema,
        clean_ms: figureSchema,
        busy_ns: z.number(),
        idle_ns: z.number(),
        idle_share: z.number(),
        kernels: z.number(),
        launches: z.number(),
      }),
    )
    .describe('Instances by batch size, smallest first; empty if all have one size.'),
  rows: z.array(phaseInstanceSchema).describe('The first instances under the profiler, at most 512.'),
});

export type PhaseInstance = z.infer<typeof phaseInstanceSchema>;
export type TracePhase = z.infer<typeof tracePhaseSchema>;
