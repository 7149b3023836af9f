import { z } from 'zod';
import { documentSchema } from '../document.js';
import { memoryProfileSchema } from './memory-profile.js';
import { sessionIdentitySchema } from './session-identity.js';

const bytes = z.number().nullable();

/** One line of the timeline; times are seconds since sampling started, as in the profile. */
const memorySeriesSchema = z.object({
  label: z.string().describe('`GPU 0`, `host`, `GPU 0 · pid 4711`, …'),
  gpu: z.number().int().nullable(),
  kind: z
    .enum(['used', 'process', 'rss'])
    .describe(
      "used: the whole device. process: one process on it. rss: host memory of the engine's processes.",
    ),
  source: z.string(),
  points: z.array(z.object({ t_s: z.number(), bytes: z.number() })),
});

/** Memory of the framework's allocator at one moment, on one GPU (null: host). */
const allocatorMomentSchema = z.object({
  gpu: z.number().int().nullable(),
  rank: z.number().int(),
  stage: z.string().describe('load, post_warmup, prefill, decode, end, failed: the stage that ends at t_s.'),
  t_s: z.number(),
  allocated_bytes: bytes,
  reserved_bytes: bytes,
  max_allocated_bytes: bytes.describe('Peak allocation within the stage.'),
  weights_bytes: bytes,
  kv_cache_bytes: bytes,
  other_bytes: bytes.describe('max_allocated (else allocated) − weights − KV cache.'),
});

const memoryResultSchema = z.object({
  session: sessionIdentitySchema.omit({ kind: true }),
  profile: memoryProfileSchema,
  timeline: z.object({
    series: z.array(memorySeriesSchema),
    marks: z.array(
      z.object({ point: z.enum(['baseline', 'post_warmup', 'peak']), t_s: z.number(), bytes: z.number() }),
    ),
    phases: z
      .array(z.object({ label: z.string(), start_s: z.number(), end_s: z.number() }))
      .describe('load, warm-up, timed: bands behind the lines.'),
  }),
  allocator: z
    .array(allocatorMomentSchema)
    .describe('Chronological; empty where the framework reported nothing.'),
  fragmentation: z
    .array(
      z.object({
        gpu: z.number().int(),
        reserved_bytes: z.number(),
        max_allocated_bytes: z.number().describe('Peak allocation.'),
        unused_share: z.number().describe('(reserved − peak allocation) / reserved.'),
        inactive_split_bytes: bytes.describe('Free pieces of split blocks at the end.'),
      }),
    )
    .describe("Reserved and not in use at the end, by GPU; empty without an allocator's statistics."),
  allocations: z
    .array(
      z.object({
        gpu: z.number().int(),
        stage: z.string().describe('prefill or decode: where the peak was.'),
        operator: z.string().describe('Where in the program: file, line, function.'),
        bytes: z.number(),
        blocks: z.number().int().nullable(),
      }),
    )
    .nullable()
    .describe(
      "With --snapshot: what was alive at the allocator's peak of one warm-up repeat, largest first; null without.",
    ),
});

export const memoryResultDocumentSchema = documentSchema('memory', '1.0', memoryResultSchema);

export type MemoryResult = z.infer<typeof memoryResultSchema>;
export type MemorySeries = z.infer<typeof memorySeriesSchema>;
export type AllocatorMoment = z.infer<typeof allocatorMomentSchema>;
