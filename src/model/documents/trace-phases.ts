import { z } from 'zod';
import { figureSchema } from '../figure.js';
import { phaseKindSchema } from './trace-phase.js';
import { spreadSchema } from './trace-spread.js';

const count = z.number().int();

/** What a device did in an instance, ns. busy + idle is the time of `clean_ms` where there is one, else `wall`. */
const splitFields = {
  busy_ns: z.number(),
  /** Kernels other than communication. */
  compute_ns: z.number(),
  exposed_comm_ns: z.number(),
  exposed_copy_ns: z.number(),
  idle_ns: z.number(),
  /** Of busy + idle, 0 to 1. */
  idle_share: z.number(),
};

export const causeSchema = z.object({
  /**
   * Bar id of the waterfall: synchronization, host, launch_overhead, launch_latency, device_dependency, unattributed;
   * host.start_up, host.shut_down: before the first device activity of the capture, and after the last.
   */
  id: z.string(),
  ns: z.number(),
  /** Of the time that idle_share is of. */
  share: z.number(),
});

export const phaseInstanceSchema = z.object({
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

/** All instances of one kind in the focus; figures are of a mean instance, what the profiler added is in none of its idle time. */
export const tracePhaseSchema = z.object({
  kind: phaseKindSchema,
  instances: count,
  /** Window of an instance: decode steps run from start to start of the next (docs/measurement.md). */
  wall: spreadSchema,
  /** host: ranges of the program, which waits for the device in every step. device: first activity to first activity. */
  clock: z.enum(['host', 'device']),
  clock_why: z.string(),
  /** The same without a profiler. */
  clean_ms: figureSchema,
  ...splitFields,
  idle_by_cause: z.array(causeSchema),
  /** Largest part of idle_by_cause; null when never idle. */
  main_cause: z.string().nullable(),
  /** A mean instance's. */
  kernels: z.number(),
  copies: z.number(),
  /** API calls that launched kernels; fewer than kernels with CUDA graphs. */
  launches: z.number(),
  /** Σ durations of its kernels. */
  kernel_ns: z.number(),
  /** The instances by batch size, where there are several sizes, smallest first; empty otherwise. */
  by_batch: z.array(
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
  ),
  /** The first ones under the profiler, at most 512. */
  rows: z.array(phaseInstanceSchema),
});

export type PhaseInstance = z.infer<typeof phaseInstanceSchema>;
export type TracePhase = z.infer<typeof tracePhaseSchema>;
