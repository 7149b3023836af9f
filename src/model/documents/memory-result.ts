import { z } from 'zod';
import { documentSchema } from '../document.js';
import { memoryProfileSchema } from './memory-profile.js';

const bytes = z.number().nullable();

/** One line of the timeline; times are seconds since sampling began, as in the profile. */
export const memorySeriesSchema = z.object({
  /** `gpu0`, `host`, `gpu0 · pid 4711`, … */
  label: z.string(),
  gpu: z.number().int().nullable(),
  /** used: the whole device. process: one process on it. rss: host memory of the engine's processes. */
  kind: z.enum(['used', 'process', 'rss']),
  source: z.string(),
  points: z.array(z.object({ t_s: z.number(), bytes: z.number() })),
});

/** What the framework's allocator held at a moment, of one GPU (null: host). */
export const allocatorMomentSchema = z.object({
  gpu: z.number().int().nullable(),
  rank: z.number().int(),
  /** load, post_warmup, prefill, decode, end: the stage whose end it is. */
  stage: z.string(),
  t_s: z.number(),
  allocated_bytes: bytes,
  reserved_bytes: bytes,
  /** Most given out within the stage. */
  max_allocated_bytes: bytes,
  weights_bytes: bytes,
  kv_cache_bytes: bytes,
  /** max_allocated (else allocated) − weights − KV cache. */
  rest_bytes: bytes,
});

export const memoryResultSchema = z.object({
  session: z.object({
    id: z.string(),
    name: z.string().nullable(),
    title: z.string(),
    started_at: z.string(),
    status: z.string(),
  }),
  profile: memoryProfileSchema,
  timeline: z.object({
    series: z.array(memorySeriesSchema),
    marks: z.array(
      z.object({ point: z.enum(['baseline', 'post_warmup', 'peak']), t_s: z.number(), bytes: z.number() }),
    ),
    /** load, warm-up, timed: bands behind the lines. */
    phases: z.array(z.object({ label: z.string(), start_s: z.number(), end_s: z.number() })),
  }),
  /** Chronological; empty where the framework told nothing. */
  allocator: z.array(allocatorMomentSchema),
  /** Reserved and not in use at the end, by GPU; empty without an allocator's statistics. */
  fragmentation: z.array(
    z.object({
      gpu: z.number().int(),
      reserved_bytes: z.number(),
      /** Most that was given out of it. */
      max_allocated_bytes: z.number(),
      /** (reserved − given out at most) / reserved. */
      unused_share: z.number(),
      /** Free pieces of split blocks at the end. */
      inactive_split_bytes: bytes,
    }),
  ),
  /** With --snapshot: what was alive at the allocator's peak of one warm-up repeat, largest first; null without. */
  allocations: z
    .array(
      z.object({
        gpu: z.number().int(),
        /** prefill or decode: where the peak was. */
        stage: z.string(),
        /** Where in the program: file, line, function. */
        operator: z.string(),
        bytes: z.number(),
        blocks: z.number().int().nullable(),
      }),
    )
    .nullable(),
});

export const memoryResultDocumentSchema = documentSchema('memory', '1.0', memoryResultSchema);

export type MemoryResult = z.infer<typeof memoryResultSchema>;
export type MemorySeries = z.infer<typeof memorySeriesSchema>;
export type AllocatorMoment = z.infer<typeof allocatorMomentSchema>;
