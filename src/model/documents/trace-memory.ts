import { z } from 'zod';
import { phaseKindSchema } from './trace-phase.js';

/** [ns since the session's start, bytes]: the maximum in equal time bins, at most 1000. */
const points = z.array(z.tuple([z.number(), z.number()]));

/** Memory of the framework's caching allocator over a capture with profile_memory, on one device. */
export const traceMemorySchema = z.object({
  capture_id: z.string(),
  device: z.number().int().nullable(),
  source: z.string(),
  allocated: points,
  reserved: points,
  peak: z.object({
    t_ns: z.number(),
    allocated_bytes: z.number(),
    phase: phaseKindSchema
      .nullable()
      .describe('What runs then; null outside of every stage or in another execution.'),
  }),
  max_reserved_bytes: z.number().nullable(),
  unused_share: z
    .number()
    .nullable()
    .describe('(peak reserved − peak allocated) / peak reserved: held by fragments and the cache.'),
});

export type TraceMemory = z.infer<typeof traceMemorySchema>;
