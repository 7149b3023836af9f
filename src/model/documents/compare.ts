import { z } from 'zod';
import { barIdSchema } from './bar-id.js';
import { opClasses } from '../classes.js';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { analyzeResultSchema } from './analyze.js';

/**
 * Two or more sessions side by side. Every `values` and `changes` has one entry per session, in the order of `sessions`;
 * changes are relative to the first session, which has null.
 */

const phase = z.string();

const changeSchema = z
  .object({
    /** ms per mean instance; negative is faster. */
    delta_ms: z.number(),
    /** Value relative to the first session's; null if that is 0. */
    ratio: z.number().nullable(),
    /**
     * Whether the change is beyond the 95 % interval of the difference; null without a known spread. Of stages with different numbers of
     * tokens, the change of ms_per_token.
     */
    significant: z.boolean().nullable(),
  })
  .nullable();

const comparedSessionSchema = z.object({
  id: z.string(),
  name: z.string().nullable(),
  title: z.string(),
  kind: z.string(),
  started_at: z.string(),
  source: z.string().describe('Where times and kernels come from.'),
});

const stageValueSchema = z
  .object({
    instances: z.number().int(),
    duration_ms: figureSchema,
    busy_ms: z.number().nullable(),
    idle_ms: z.number().nullable(),
    idle_share: z.number().nullable(),
    main_cause: z.string().nullable(),
    kernels: z.number().nullable(),
    launches: z.number().nullable(),
    /** Tokens processed per mean instance over the batch (1.2); null if unknown. */
    tokens: z.number().nullable(),
    tokens_per_s: figureSchema,
    /** duration_ms / tokens, comparable across batch sizes (1.2). */
    ms_per_token: figureSchema,
    mfu: figureSchema,
  })
  .nullable();

/** Null: the session has no such phase, or no kernels or operators in it. */
const classValueSchema = z.object({ ms: z.number(), count: z.number(), share: z.number() }).nullable();

/** A kernel, or an operator of the embedded engine, per mean instance of its phase. */
const kernelValueSchema = z.object({ count: z.number(), ms: z.number(), mean_ns: z.number() }).nullable();

export const kernelChanges = ['new', 'gone', 'faster', 'slower', 'more', 'fewer', 'between', 'same'] as const;

/** From the roofline to the time of a stage, with the same bars for all sessions (1.3). */
const comparedWaterfallSchema = z.object({
  phase,
  profiled: z.boolean().describe('The times are those under the profiler, since a session has no others.'),
  times_ms: z
    .array(figureSchema.nullable())
    .describe('What the bars of each session sum to; null where it has no waterfall of the stage.'),
  roofline_ms: z.array(figureSchema.nullable()),
  bars: z.array(
    z.object({
      id: barIdSchema.describe(
        'As in `inferscope/explain`: roofline, inefficiency.<class>, launch_overhead, …',
      ),
      label: z.string(),
      values: z.array(z.number().nullable()).describe('ms of a mean instance.'),
      changes: z.array(z.number().nullable()).describe('ms against the first session.'),
    }),
  ),
});

/** Gain of a stage from more ranks (1.4). */
const comparedScalingSchema = z.object({
  phase,
  values: z.array(
    z
      .object({
        ranks: z.number().int(),
        speedup: z
          .number()
          .describe('Steps per time, or tokens where they are counted, over those of the first session.'),
        efficiency: z
          .number()
          .describe('Speedup / ratio of the numbers of ranks, which share the work of a step.'),
        communication_share: z.number().describe('Exposed communication over the time of the stage.'),
      })
      .nullable(),
  ),
});

const compareResultSchema = z.object({
  what: z
    .enum(['trace', 'profile'])
    .describe('trace: GPU timelines, by kernels. profile: programs on the CPU, by operators.'),
  sessions: z.array(comparedSessionSchema),
  headlines: z.array(z.object({ id: z.string(), text: z.string() })),
  environment: z
    .array(
      z.object({
        label: z.string(),
        part: z.enum(['workload', 'engine', 'hardware', 'software', 'clocks']),
        values: z.array(z.string().nullable()),
        could_explain: z.string().nullable(),
      }),
    )
    .describe('Only what differs; `could_explain` says how it may affect times.'),
  stages: z.array(z.object({ phase, values: z.array(stageValueSchema), changes: z.array(changeSchema) })),
  waterfalls: z.array(comparedWaterfallSchema).describe('Stages with a waterfall in two or more sessions.'),
  scaling: z
    .array(comparedScalingSchema)
    .describe('Stages of sessions on different numbers of ranks; empty if all have the same number.'),
  classes: z.array(
    z.object({
      phase,
      class: z.enum(opClasses),
      values: z.array(classValueSchema),
      changes: z.array(changeSchema),
    }),
  ),
  kernels: z
    .array(
      z.object({
        phase,
        name: z.string(),
        short_name: z.string(),
        class: z.enum(opClasses),
        values: z.array(kernelValueSchema),
        changes: z.array(changeSchema),
        status: z
          .enum(kernelChanges)
          .describe('Last session against the first; between: only sessions between the two have it.'),
      }),
    )
    .describe('By the largest change, at most 200.'),
  kernel_counts: z.record(z.enum(kernelChanges), z.number().int()),
  gemm_tiles: z
    .array(
      z.object({
        phase,
        count: z.number().int().describe('GEMM kernels of an instance with these tiles.'),
        tiles: z
          .array(z.string())
          .describe("Tile, or the kernel's name where it shows none; one per session."),
        matched_by: z.enum(['position', 'share']),
      }),
    )
    .describe('GEMM kernels of one typical instance, matched by their place in it.'),
  attention: z.array(
    z.object({
      phase,
      implementations: z.array(z.array(z.string())),
      switched: z.boolean(),
      text: z.string(),
    }),
  ),
  narrative: analyzeResultSchema
    .optional()
    .describe('`--ai`: summary by a language model, its numbers checked.'),
});

export const compareVersion = '1.4';
export const compareDocumentSchema = documentSchema('compare', compareVersion, compareResultSchema);

export type CompareResult = z.infer<typeof compareResultSchema>;
export type ComparedWaterfall = z.infer<typeof comparedWaterfallSchema>;
export type ComparedScaling = z.infer<typeof comparedScalingSchema>;
export type Change = z.infer<typeof changeSchema>;
export type StageValue = z.infer<typeof stageValueSchema>;
export type KernelChange = (typeof kernelChanges)[number];
