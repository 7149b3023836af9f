import { z } from 'zod';
import { documentSchema } from '../document.js';
import { profileConfidences } from './memory-profile.js';

/** One of the two profiles. */
const memorySideSchema = z.object({
  selector: z.string(),
  kind: z.enum(['session', 'file']),
  label: z.string().describe("The session's name or id, or the file's name."),
  model: z.string(),
  engine: z.string().nullable(),
  status: z.enum(['measured', 'partial', 'unknown']),
  timestamp: z.string().nullable(),
  absent: z.array(z.string()).describe('Fields of schema 2.0 that the profile lacks.'),
});

const memoryChangeSchema = z.object({
  name: z.string(),
  base_gb: z.number().nullable(),
  now_gb: z.number().nullable(),
  change_gb: z.number().nullable().describe('now − base; null where a side is missing.'),
  change_share: z.number().nullable().describe('Share of base; null where that is 0 or missing.'),
  missing: z.string().nullable().describe('Why the change is not known.'),
});

const confidence = z.enum(profileConfidences);

/** Two memory profiles side by side; GB are 10^9 bytes, as in the profiles. */
const memoryCompareSchema = z.object({
  base: memorySideSchema,
  now: memorySideSchema,
  headlines: z.array(z.string()).describe('What changed most, in words.'),
  points: z
    .array(memoryChangeSchema)
    .describe('baseline, post_warmup, peak, and the increases between them.'),
  components: z
    .array(
      memoryChangeSchema.extend({
        base_confidence: confidence.nullable(),
        now_confidence: confidence.nullable(),
        share_of_change: z
          .number()
          .nullable()
          .describe('Share of the change of the measured total; null where that is 0 or missing.'),
      }),
    )
    .describe("Components of the run's own memory at the peak, including the residual and the total."),
  gpus: z.array(memoryChangeSchema.extend({ gpu: z.number().int() })).describe('Peak of each GPU.'),
  latency: z.array(
    z.object({
      name: z.string(),
      unit: z.string(),
      base: z.number().nullable(),
      now: z.number().nullable(),
      change_share: z.number().nullable(),
    }),
  ),
  differences: z
    .array(z.object({ label: z.string(), base: z.string().nullable(), now: z.string().nullable() }))
    .describe('What the configurations differ in.'),
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
