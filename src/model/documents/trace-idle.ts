import { z } from 'zod';
import { phaseKindSchema } from './trace-phase.js';

const count = z.number().int();

export const idleSchema = z.object({
  waits: z
    .array(
      z.object({
        phase: phaseKindSchema,
        cause: z.string().describe('A gap counts under each of its causes, with that part of its time.'),
        operator: z
          .string()
          .nullable()
          .describe('Operator that launched what ended the gaps; null where none did.'),
        api_name: z
          .string()
          .nullable()
          .describe(
            'API call that launched what ended them: the most frequent of the 32 longest; null where it explains nothing (latency).',
          ),
        count,
        total_ns: z.number(),
        longest_ns: z.number(),
      }),
    )
    .describe('What ran on the host when the device waited, by the operator or call that ended the gap.'),
  longest: z.array(
    z.object({
      start_ns: z.number(),
      dur_ns: z.number(),
      cause: z.string().nullable().describe('Cause of the largest part.'),
      parts: z
        .array(z.object({ id: z.string(), ns: z.number() }))
        .describe('By cause, the largest first; they sum to dur_ns.'),
      phase: phaseKindSchema,
      operator: z.string().nullable(),
      api_name: z.string().nullable(),
    }),
  ),
});

export const overlapSchema = z.object({
  streams: z.array(
    z.object({
      context: count.nullable(),
      stream: count.nullable(),
      kernels: count,
      kernel_ns: z.number(),
      copies: count,
      copy_ns: z.number(),
      start_ns: z.number(),
      end_ns: z.number(),
    }),
  ),
  compute_ns: z.number(),
  compute_overlap_ns: z
    .number()
    .describe(
      'Compute kernels that ran at the same time as other compute kernels: Σ durations − time at least one ran.',
    ),
  comm_ns: z.number().describe('Time in which communication ran, each instant once.'),
  comm_hidden_ns: z.number().describe('The part of comm_ns that is hidden behind computation.'),
  copy_ns: z.number().describe('Time in which copies ran, each instant once.'),
  copy_hidden_ns: z.number(),
  serialized: z
    .boolean()
    .describe('Several streams have kernels, which hardly overlap (under 1 % of kernel time).'),
});

export type Idle = z.infer<typeof idleSchema>;
export type Overlap = z.infer<typeof overlapSchema>;
