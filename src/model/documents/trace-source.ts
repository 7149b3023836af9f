import { z } from 'zod';
import { figureSchema } from '../figure.js';

const count = z.number().int();

/** What was looked at: never a sum over executions, captures or ranks. */
export const traceSourceSchema = z.object({
  /** Kernels, stages, gaps. */
  attribution: z.object({
    execution_id: z.string(),
    capture_id: z.string(),
    /** Where its stages are, if another capture of the execution recorded them. From 1.6 on. */
    stages_capture_id: z.string().optional(),
    tool: z.string(),
    purpose: z.string(),
  }),
  /** Execution whose wall times count; null where only the profiled one has stages, and times hold its overhead. */
  timing: z.object({ execution_id: z.string() }).nullable(),
  /** False where the capture has operators and nothing ran on a device: all that is left are phases and operators. */
  gpu_used: z.boolean(),
  /** One rank and one device: everything below but `devices` is of them. */
  focus: z.object({ rank: count.nullable(), device: count.nullable() }),
  /** Why these, in sentences. */
  why: z.array(z.string()),
  executions: z.array(
    z.object({
      execution_id: z.string(),
      purpose: z.string(),
      captures: z.array(z.object({ capture_id: z.string(), tool: z.string(), kernels: count })),
      used_for: z.enum(['attribution', 'timing']).nullable(),
    }),
  ),
  /** First and last device activity of the focus, ns since the session's start. */
  start_ns: z.number(),
  end_ns: z.number(),
});

/** One row a rank and device of the attributed capture. */
export const traceDeviceSchema = z.object({
  rank: count.nullable(),
  device: count.nullable(),
  focus: z.boolean(),
  name: z.string().nullable(),
  sm_count: figureSchema,
  peak_bandwidth_bytes_per_s: figureSchema,
  /** Dense data-sheet peak for the workload's dtype. */
  peak_flops_per_s: figureSchema,
  streams: count,
  kernels: count,
  copies: count,
  kernel_ns: z.number(),
  copy_ns: z.number(),
  /** At least one kernel or copy ran: Σ exclusive_ns. */
  busy_ns: z.number(),
  /** First to last activity. */
  span_ns: z.number(),
});

export type TraceSource = z.infer<typeof traceSourceSchema>;
export type TraceDevice = z.infer<typeof traceDeviceSchema>;
