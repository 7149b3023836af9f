import { z } from 'zod';
import { documentSchema } from '../document.js';
import { profileConfidences } from './memory-profile.js';

/** Two memory profiles side by side; GB are 10^9 bytes, as in the profiles. */
export const memorySideSchema = z.object({
  selector: z.string(),
  kind: z.enum(['session', 'file']),
  /** The session's name or id, or the file's name. */
  label: z.string(),
  model: z.string(),
  engine: z.string().nullable(),
  status: z.enum(['measured', 'partial', 'unknown']),
  timestamp: z.string().nullable(),
  /** Fields of schema 2.0 that the profile lacks. */
  absent: z.array(z.string()),
});

export const memoryChangeSchema = z.object({
  name: z.string(),
  base_gb: z.number().nullable(),
  now_gb: z.number().nullable(),
  /** now − base; null where a side is missing. */
  change_gb: z.number().nullable(),
  /** Of base; null where it is 0 or missing. */
  change_share: z.number().nullable(),
  /** Why there is no change. */
  missing: z.string().nullable(),
});

const confidence = z.enum(profileConfidences);

export const memoryCompareSchema = z.object({
  base: memorySideSchema,
  now: memorySideSchema,
  /** What changed most, in words. */
  headlines: z.array(z.string()),
  /** baseline, post_warmup, peak, and the increases between them. */
  points: z.array(memoryChangeSchema),
  /** Components of the run's own memory at the peak, the residual and their total among them. */
  components: z.array(
    memoryChangeSchema.extend({
      base_confidence: confidence.nullable(),
      now_confidence: confidence.nullable(),
      /** Of the change of the measured total; null where that is 0 or missing. */
      share_of_change: z.number().nullable(),
    }),
  ),
  /** Peak of each GPU. */
  gpus: z.array(memoryChangeSchema.extend({ gpu: z.number().int() })),
  latency: z.array(
    z.object({
      name: z.string(),
      unit: z.string(),
      base: z.number().nullable(),
      now: z.number().nullable(),
      change_share: z.number().nullable(),
    }),
  ),
  /** What the configurations differ in. */
  differences: z.array(
    z.object({ label: z.string(), base: z.string().nullable(), now: z.string().nullable() }),
  ),
});

export const memoryCompareVersion = '1.0';
export const memoryCompareDocumentSchema = documentSchema(
  'memory-compare',
  memoryCompareVersion,
  memoryCompareSchema,
);

export type MemoryCompareResult = z.infer<typeof memoryCompareSchema>;
export type MemorySide = z.infer<typeof memorySideSchema>;
export type MemoryChange = z.infer<typeof memoryChangeSchema>;
