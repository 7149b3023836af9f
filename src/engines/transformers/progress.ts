import { z } from 'zod';
import { type BenchProgress, pointOutcomes } from '../../model/bench.js';

const progressSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('phase'), phase: z.enum(['load', 'warmup', 'timed', 'device_work']) }),
  z.object({
    type: z.literal('iteration'),
    point: z.string(),
    iteration: z.number().int(),
    warmup: z.boolean(),
    e2e_ms: z.number(),
  }),
  z.object({
    type: z.literal('point'),
    point: z.string(),
    outcome: z.enum(pointOutcomes),
    text: z.string().nullable(),
  }),
]);

/** One line of the process's stdout, e.g. {"type": "phase", "phase": "load"}; null for anything else. */
export function parseProgress(line: string): BenchProgress | null {
  if (!line.startsWith('{')) return null;
  try {
    return progressSchema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
