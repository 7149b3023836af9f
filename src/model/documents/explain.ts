import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { workloadSchema } from '../manifest.js';
import { barIdSchema } from './bar-id.js';
import { withheldReasonSchema } from '../withheld.js';
import { phaseKinds } from './trace-phase.js';
import { sessionIdentitySchema } from './session-identity.js';

const confidence = z.enum(['high', 'medium', 'low']);

/** One bar of a mean instance of a stage, by the ids of docs/concepts/waterfall.md (the gap waterfall). */
const waterfallBarSchema = z.object({
  id: barIdSchema.describe(
    'roofline, serial, inefficiency.<class>, nonessential.<class>, exposed_comm, exposed_copy.<kind>, launch_latency, …',
  ),
  label: z.string().describe('The id in words.'),
  ms: z.number().describe('Mean per instance; negative only with a note that says why.'),
  share: z.number().describe('Share of the measured time.'),
  count: z
    .number()
    .nullable()
    .describe(
      'Kernels, launches, gaps or copies of a mean instance behind it; null where nothing is counted.',
    ),
  confidence,
  confidence_why: z.string(),
  sql: z
    .string()
    .nullable()
    .describe(
      'Yields its rows with `inferscope sql --session ID`; null for bars that are arithmetic, explained in `note`.',
    ),
  better_capture: z
    .string()
    .nullable()
    .describe('The capture that would make it more precise; null where none would.'),
  note: z.string().nullable(),
  parts: z
    .array(
      z.object({
        label: z.string(),
        ms: z.number(),
        count: z.number().nullable(),
        kernel: z.string().optional().describe('Short name of a kernel without a known class.'),
      }),
    )
    .describe(
      'Its largest parts where they are known: host by operator or range, synchronization by API call, a class by cause, other operations by kernel.',
    ),
});

/**
 * request: from the start of a prefill to the end of its last step; of a load test: from the time it was due to its last token. other: a
 * range marked by the program, with its name.
 */
const waterfallKinds = [...phaseKinds, 'request'] as const;
const waterfallKindSchema = z.enum(waterfallKinds);

const fromScheduleSchema = z
  .literal(true)
  .optional()
  .describe('From the send time of an open-loop schedule.');

/**
 * From the roofline to the measured time of one kind of stage: `bars` sum to `measured_ms`. Their shares are of that sum without the last
 * bar, profiler_overhead: the time of the clean execution if there is one.
 */
const stageWaterfallSchema = z.object({
  kind: waterfallKindSchema,
  name: z
    .string()
    .nullable()
    .describe(
      'Name of a range that the program marks, with # for its numbers; stage and variant if a benchmark has several variants; null otherwise.',
    ),
  source: z
    .enum(['trace', 'operators', 'profile', 'bench', 'serving', 'record'])
    .describe(
      "trace: kernels and gaps of nsys or Kineto. operators: those of a framework on the CPU. profile: those of the embedded engine. bench: figures of a benchmark's point. serving: requests of a load test, as client and server report them. record: steps of a program without a profiler.",
    ),
  execution_id: z.string(),
  point: z.string().nullable().describe('Point of a benchmark or load of a load test; null otherwise.'),
  from_schedule: fromScheduleSchema,
  instances: z.number().int(),
  measured_ms: figureSchema.describe('Mean, ms, with its spread over instances (sd) and interval.'),
  median_ms: z.number().nullable(),
  p10_ms: z.number().nullable().describe('10th percentile, which other programs disturb least.'),
  clock: z.enum(['host', 'device']),
  clock_why: z.string(),
  clean_ms: figureSchema.describe('The same stage without a profiler.'),
  roofline_ms: figureSchema.describe('max(Σ F/P, ΣB/BW); missing without a model or roofs, with the reason.'),
  bound: z
    .enum(['compute', 'memory'])
    .nullable()
    .describe('Which of the two sets the roofline; null where it is not known (1.5).'),
  new_tokens: z
    .number()
    .nullable()
    .describe(
      'Tokens of all sequences that a mean instance computes; null where it is not one pass of the model (1.5).',
    ),
  sequences: z
    .number()
    .nullable()
    .optional()
    .describe('Mean number of sequences per step; null or absent where it is not recorded (1.8).'),
  roofs: z.array(z.string()).describe('Source of the peaks: data sheet or measured, dtype, bandwidth level.'),
  bars: z.array(waterfallBarSchema),
  sum_error_share: z.number().describe('|Σ bars − measured| / measured: below 0.001.'),
  rows: z
    .array(
      z.object({
        stage_id: z.number().int(),
        label: z.string(),
        measured_ms: z.number(),
        bars: z.array(z.object({ id: barIdSchema, ms: z.number() })),
      }),
    )
    .describe('The first instances, each split by the same ids.'),
  ranks: z
    .array(
      z.object({
        rank: z.number().int().nullable(),
        device: z.number().int().nullable(),
        measured_ms: z.number(),
      }),
    )
    .describe(
      'Mean measured time by rank and device: first that of the bars, then the others from the slowest on.',
    ),
  ranks_recorded: z
    .number()
    .int()
    .optional()
    .describe(
      'Number of ranks and devices, if not all were compared: of many only those with the most kernel time are, and of a job those with the least time in collectives.',
    ),
});

const evidenceSchema = z.object({
  text: z.string().describe('What the rows show, with its numbers.'),
  sql: z
    .string()
    .nullable()
    .describe(
      'The query; null where the evidence is the manifest or a telemetry figure, which `text` names.',
    ),
  rows: z
    .array(z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])))
    .describe('At most ten rows of its answer.'),
  row_count: z.number().int(),
  kernel_labels: z
    .record(z.string(), z.string())
    .describe('What sentences call the kernels of the rows, by full name: distinct among all kernels.'),
});

export const severities = ['high', 'medium', 'low', 'info'] as const;

const findingSchema = z.object({
  id: z.string().describe('rule, or rule:stage; unique in the document.'),
  rule: z.string(),
  severity: z
    .enum(severities)
    .describe(
      "By the affected share of the stage, multiplied by the lower end of the 95 % interval of the stage's time divided by that time: high from 20 %, medium from 5 %, low below. Without such a share: high if a point ran out of memory, else info.",
    ),
  stage: waterfallKindSchema.nullable(),
  title: z
    .string()
    .describe('One sentence with its number: "Launch-bound: the GPU is idle 91 % of every decode step".'),
  at_stake_ms: z
    .number()
    .nullable()
    .describe('Mean per instance of the stage; null if the finding is not about time.'),
  at_stake_share: z.number().nullable(),
  cause: z.string(),
  change: z.object({
    kind: z.enum(['flag', 'code', 'config', 'environment', 'capture']),
    text: z.string().describe('What to change, in one sentence.'),
    details: z.string().optional().describe('How, or what would not be enough (1.4).'),
    example: z
      .string()
      .nullable()
      .describe(
        'A flag, a line of code, a configuration, as it would be typed; null where the text says it.',
      ),
  }),
  gain: z
    .object({
      /**
       * stage: gain per mean instance of the stage. token: gain in the time of a step divided by its sequences, if the change does not
       * shorten a step but serves more sequences per step; low, high and after are then also per token. pause: gain per pause between
       * two stages.
       */
      per: z.enum(['stage', 'token', 'pause']).default('stage'),
      expected_ms: z.number(),
      low_ms: z.number(),
      high_ms: z.number(),
      /** The stage's time afterwards: measured − expected, without profiler overhead if known. */
      after_ms: z.number(),
      assumption: z.string(),
      /** Host time for the launches that remain, which limits the gain; absent where it does not. */
      host_ms: z.number().optional(),
      /** The corresponding `explain --what-if` change; null if there is none. */
      what_if: z.string().nullable(),
    })
    .nullable()
    .describe('Expected effect of the change; null where none can be predicted, with the reason in `cause`.'),
  confidence,
  bars: z.array(barIdSchema).describe('Bars of the waterfall it explains.'),
  evidence: z.array(evidenceSchema),
  hidden_by: z
    .string()
    .nullable()
    .describe(
      "Id of a larger finding that must go first for this one's gain to show in the stage's time; null otherwise.",
    ),
  references: z.array(z.object({ title: z.string(), url: z.string() })),
  check: z.string().describe('What to type to see whether the change worked.'),
});

/** Other load on the machine during the measurement, and how it was detected. */
const machineLoadSchema = z.object({
  busy: z
    .boolean()
    .describe(
      'A sign reached its threshold: times are upper bounds, findings that noise can produce are withheld.',
    ),
  usable_cores: z
    .number()
    .nullable()
    .describe('Cores that the session could use; null where that was not recorded.'),
  signs: z
    .array(
      z.object({
        id: z
          .enum(['other_processes', 'steal', 'launch_spread'])
          .describe(
            'other_processes: cores that neither the program nor inferscope used. steal: CPU time that the hypervisor gave to other machines. launch_spread: medians of clean launches, (largest − smallest) / median.',
          ),
        value: z.number(),
        unit: z.enum(['cores', '%', 'ratio']),
        threshold: z.number(),
        reached: z.boolean(),
        why: z.string().describe('Reason for the threshold.'),
      }),
    )
    .describe('Those that the session recorded.'),
});

const explainResultSchema = z.object({
  session: sessionIdentitySchema,
  workload: workloadSchema.nullable(),
  preface: z
    .array(z.string())
    .describe(
      'What to know before the figures: that the machine was busy, which rank is shown, why there is no waterfall (1.5).',
    ),
  sentences: z
    .array(z.string())
    .describe(
      'Three sentences for someone in a hurry: the time and its limit, the largest cause, the first change.',
    ),
  stages: z.array(stageWaterfallSchema),
  without_waterfall: z
    .array(z.object({ stage: z.string().nullable(), reason: z.string() }))
    .describe('Why a stage or the whole session has no waterfall; empty where all have one.'),
  findings: z
    .array(findingSchema)
    .describe(
      'By affected ms over the whole run, as far as the interval of the stage makes them certain, the largest first; findings with a gain per token come after those that shorten their stage noticeably.',
    ),
  rules: z
    .array(
      z.object({
        rule: z.string(),
        title: z.string(),
        outcome: z
          .enum(['fired', 'not_fired', 'not_applicable', 'withheld'])
          .describe('withheld: noise on this busy machine can produce all that it found.'),
        why: z.string(),
      }),
    )
    .describe('Every rule and its outcome.'),
  machine: machineLoadSchema,
  withheld: z
    .array(
      z.object({
        rule: z.string(),
        stage: waterfallKindSchema.nullable(),
        title: z.string().describe('Title of the rule; for an observation of a profile its id.'),
        reason: withheldReasonSchema,
      }),
    )
    .describe('Findings of rules that fired but are not claimed, each with its reason.'),
  next_steps: z
    .array(z.object({ command: z.string(), why: z.string(), asks: z.boolean().optional() }))
    .describe('What to capture next, and what it would show; `asks`: what only the user knows.'),
});

export const explainVersion = '1.9';
export const explainDocumentSchema = documentSchema('explain', explainVersion, explainResultSchema);

/** `explain --what-if`: predicted stage times under one change, each with an interval. */
const whatIfResultSchema = z.object({
  session: explainResultSchema.shape.session,
  change: z
    .string()
    .describe('As typed: cudagraph, batch-size=32, dtype=float8, fused-attention, gpu=H100, …'),
  stages: z.array(
    z.object({
      kind: waterfallKindSchema,
      point: z.string().nullable().describe('Point of a benchmark; null otherwise.'),
      before_ms: figureSchema,
      after_ms: figureSchema.describe('ci95 is the interval of the prediction.'),
      per_token_before_ms: z
        .number()
        .nullable()
        .describe('Time of a decode step divided by its sequences, if the batch changes.'),
      per_token_after_ms: z.number().nullable(),
      per_sequence_before_ms: z.number().nullable().describe('The same for a prefill.'),
      per_sequence_after_ms: z.number().nullable(),
      bars: z
        .array(
          z.object({ id: barIdSchema, before_ms: z.number(), after_ms: z.number(), explanation: z.string() }),
        )
        .describe('Bars that change: by how much and why.'),
      assumptions: z.array(z.string()),
      unchanged: z
        .array(z.object({ change: z.string(), why: z.string() }))
        .describe('Changes that do nothing in this stage, and why.'),
    }),
  ),
});
export const whatIfVersion = '1.1';
export const whatIfDocumentSchema = documentSchema('what-if', whatIfVersion, whatIfResultSchema);

/** `explain --verify AFTER`: expected and achieved gain of each finding of the earlier session that the change removed. */
const verifyResultSchema = z.object({
  before: explainResultSchema.shape.session,
  after: explainResultSchema.shape.session,
  stages: z.array(
    z.object({
      kind: waterfallKindSchema,
      point: z.string().nullable().describe('Point of a benchmark; null otherwise.'),
      from_schedule: fromScheduleSchema,
      before_ms: figureSchema,
      after_ms: figureSchema,
      graded_on: z
        .enum(['wall', 'gpu'])
        .describe(
          'wall: measured time of the stage. gpu: time of kernels and copies, where the measured time is too noisy to compare.',
        ),
      graded_why: z.string(),
      profiled: z
        .enum(['none', 'both', 'before', 'after'])
        .describe('Which of the two times are under a profiler; the bars have what it added.'),
      sequences: z
        .object({
          unit: z
            .enum(['sequence', 'token'])
            .describe('token: of prefill, where prompts may be split (1.4).'),
          before: z.number(),
          after: z.number(),
        })
        .nullable()
        .describe(
          'Sequences or tokens per step where the sequences differ: all times after are scaled to those before; null where they do not differ (1.3).',
        ),
      achieved_ms: z.number(),
      bars: z
        .array(
          z.object({
            id: barIdSchema,
            before_ms: z.number().nullable(),
            after_ms: z.number().nullable(),
          }),
        )
        .describe('null where the roofline of a side is unknown, or only of the other (1.3).'),
    }),
  ),
  changes: z.array(
    z.object({
      finding: z.string(),
      stage: waterfallKindSchema.nullable(),
      title: z.string(),
      outcome: z
        .enum(['gone', 'smaller', 'still_there', 'new', 'not_judged'])
        .describe(
          'gone, smaller, still there, or new in the session after; not_judged: withheld there, for the reason in text.',
        ),
      expected_ms: z.number().nullable(),
      low_ms: z.number().nullable(),
      high_ms: z.number().nullable(),
      achieved_ms: z.number().nullable(),
      achieved_error_ms: z
        .number()
        .nullable()
        .describe('Measurement error of the achieved gain; null where it is not graded (1.3).'),
      error: z
        .number()
        .nullable()
        .describe('(expected − achieved) / achieved; null if either is missing or nothing was achieved.'),
      as_expected: z
        .boolean()
        .nullable()
        .describe(
          'Whether the achieved gain is from low_ms to high_ms, widened by the measurement error; null where it cannot be graded.',
        ),
      text: z.string(),
    }),
  ),
  score: z
    .object({
      graded: z.number().int(),
      as_expected: z.number().int(),
      median_absolute_error: z.number().nullable(),
    })
    .describe('Over the changes that can be graded.'),
  sentences: z.array(z.string()),
});
export const verifyVersion = '1.5';
export const verifyDocumentSchema = documentSchema('verify', verifyVersion, verifyResultSchema);

export type WaterfallKind = z.infer<typeof waterfallKindSchema>;
export type WaterfallBar = z.infer<typeof waterfallBarSchema>;
export type StageWaterfall = z.infer<typeof stageWaterfallSchema>;
export type Evidence = z.infer<typeof evidenceSchema>;
export type Finding = z.infer<typeof findingSchema>;
export type MachineLoad = z.infer<typeof machineLoadSchema>;
export type ExplainResult = z.infer<typeof explainResultSchema>;
export type WhatIfResult = z.infer<typeof whatIfResultSchema>;
export type VerifyResult = z.infer<typeof verifyResultSchema>;
