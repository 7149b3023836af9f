import { z } from 'zod';
import { figureSchema } from '../figure.js';

const count = z.number().int();

/** The analyzed part of the session: never a sum over executions, captures or ranks. */
export const traceSourceSchema = z.object({
  attribution: z
    .object({
      execution_id: z.string(),
      capture_id: z.string(),
      stages_capture_id: z
        .string()
        .optional()
        .describe('Where its stages are, if another capture of the execution recorded them. From 1.6 on.'),
      tool: z.string(),
      purpose: z.string(),
    })
    .describe('Kernels, stages, gaps.'),
  timing: z
    .object({ execution_id: z.string() })
    .nullable()
    .describe(
      'Execution used for wall times; null where only the profiled one has stages, so that times include its overhead.',
    ),
  gpu_used: z
    .boolean()
    .describe(
      'False where the capture has operators and nothing ran on a device: the document then has only stages and operators.',
    ),
  focus: z
    .object({
      rank: count.nullable(),
      device: count.nullable(),
      process_rank: count
        .optional()
        .describe('Rank of its process in the tables of the host, where the process has a rank per device.'),
      other_threads: z
        .array(count)
        .optional()
        .describe(
          'Threads of its process without the rows of the host that are counted here: they launch only on other devices.',
        ),
    })
    .describe('One rank and one device: all figures below except `devices` are of them.'),
  why: z.array(z.string()).describe('Why these, in sentences.'),
  executions: z.array(
    z.object({
      execution_id: z.string(),
      purpose: z.string(),
      captures: z.array(z.object({ capture_id: z.string(), tool: z.string(), kernels: count })),
      used_for: z.enum(['attribution', 'timing']).nullable(),
    }),
  ),
  start_ns: z
    .number()
    .describe(
      "First and last device activity of the analyzed rank and device, ns since the session's start.",
    ),
  end_ns: z.number(),
});

/** One row per rank and device of the attributed capture. */
export const traceDeviceSchema = z.object({
  rank: count.nullable(),
  device: count.nullable(),
  focus: z.boolean(),
  name: z.string().nullable(),
  sm_count: figureSchema,
  peak_bandwidth_bytes_per_s: figureSchema,
  peak_flops_per_s: figureSchema.describe("Dense data-sheet peak for the workload's dtype."),
  streams: count,
  kernels: count,
  copies: count,
  kernel_ns: z.number(),
  copy_ns: z.number(),
  busy_ns: z.number().describe('At least one kernel or copy ran: Σ exclusive_ns.'),
  span_ns: z.number().describe('First to last activity.'),
});

export type TraceSource = z.infer<typeof traceSourceSchema>;
export type TraceDevice = z.infer<typeof traceDeviceSchema>;
