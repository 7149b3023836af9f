import { z } from 'zod';
import { benchParts, pointOutcomes } from '../bench.js';
import { documentSchema } from '../document.js';
import { sentenceSchema } from '../sentence-template.js';
import { figureSchema, intervalOverSchema, missingFigureSchema } from '../figure.js';
import { type FigureRow, valuesOf } from '../figure-rows.js';
import { codeSchema } from '../code-schema.js';
import type { ReasonCode } from '../reason-codes.js';
import type { IssueCode } from '../issue-codes.js';
import { sessionIdentitySchema } from './session-identity.js';

/** Statistics over the timed repeats of a point (itl: over its tokens). Percentiles are linear (type 7), sd is over n − 1. */
const benchSpreadSchema = z.object({
  unit: z.string(),
  n: z.number().int(),
  launches: z.number().int(),
  mean: z.number(),
  ci95: z
    .tuple([z.number(), z.number()])
    .nullable()
    .describe(
      "95 % interval of the mean over the launches' means (Student); over repeats when there was one launch.",
    ),
  ci95_over_launches: z
    .boolean()
    .describe(
      'True if ci95 is over process launches: only then it predicts the next process. Rounds against one server process are not launches.',
    ),
  ci95_over: intervalOverSchema.optional(),
  sd: z.number().nullable(),
  min: z.number(),
  p50: z.number(),
  p90: z.number(),
  p95: z.number(),
  p99: z.number(),
  max: z.number(),
  outliers: z.number().int().describe("Values beyond Tukey's fences: counted and marked, never removed."),
  source: z.string(),
});
const benchDistributionSchema = z.union([benchSpreadSchema, missingFigureSchema]);

const benchFlagSchema = z.object({
  code: codeSchema<IssueCode>().describe('One of the issue codes, e.g. low_utilization, high_variance.'),
  severity: z.enum(['good', 'info', 'warning']),
  text: z.string(),
  sentence: sentenceSchema.optional(),
});

/** Expected range from the roofline: its lower bound, and what eager programs commonly reach. */
const benchExpectationSchema = z.union([
  z.object({ unit: z.literal('ms'), low: z.number(), high: z.number(), explanation: z.string() }),
  missingFigureSchema,
]);

const benchPointSchema = z.object({
  point: z.string(),
  parts: z.array(z.enum(benchParts)),
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  outcome: z.enum(pointOutcomes),
  text: z.string().nullable().describe('Why it was not measured, or not in all launches.'),
  warmup: z.object({ iterations: figureSchema, stable: z.boolean().nullable() }),
  interleaved: z.boolean(),
  latency: z.object({
    ttft_ms: benchDistributionSchema,
    tpot_ms: benchDistributionSchema,
    itl_ms: benchDistributionSchema,
    e2e_ms: benchDistributionSchema,
    prefill_device_ms: benchDistributionSchema.describe('Between device events around the stage.'),
    decode_device_ms: benchDistributionSchema,
  }),
  throughput: z.object({
    output_tokens_per_s: figureSchema.describe('batch × output tokens / end to end.'),
    total_tokens_per_s: figureSchema.describe('Prompt tokens included.'),
    decode_tokens_per_s: figureSchema.describe('batch / TPOT.'),
    prefill_tokens_per_s: figureSchema,
    requests_per_s: figureSchema,
  }),
  device_work: z
    .object({
      prefill_kernel_ms: figureSchema,
      decode_kernel_ms: figureSchema,
      decode_kernels: figureSchema,
      prefill_idle_share: figureSchema.describe('1 − busy / host time of the clean stage.'),
      decode_idle_share: figureSchema,
    })
    .describe('Per prefill and per mean decode step.'),
  machine: z.object({
    gpu_utilization_percent: figureSchema,
    gpu_memory_used_bytes: figureSchema,
    memory_bytes: figureSchema.describe(
      "By the engine's own allocator, or peak resident memory of the process.",
    ),
    power_w: figureSchema,
    sm_clock_mhz: figureSchema,
    cpu_cores_busy: figureSchema,
    joules_per_output_token: figureSchema,
    kv_cache_usage: figureSchema,
  }),
  model_utilization: z.object({
    prefill_mfu: figureSchema,
    prefill_mbu: figureSchema,
    decode_mfu: figureSchema,
    decode_mbu: figureSchema,
    prefill_bound: z
      .enum(['memory', 'compute'])
      .nullable()
      .describe('memory or compute; null without a roofline.'),
    decode_bound: z.enum(['memory', 'compute']).nullable(),
  }),
  expected: z.object({ ttft: benchExpectationSchema, tpot: benchExpectationSchema }),
  flags: z.array(benchFlagSchema),
  repeats: z
    .array(
      z.object({
        launch: z.number().int(),
        iteration: z.number().int(),
        ttft_ms: z.number().nullable(),
        tpot_ms: z.number().nullable(),
        e2e_ms: z.number(),
      }),
    )
    .optional()
    .describe('Every timed repeat in the order they ran; the distributions are over them.'),
});

/** A fitted line with its error; x and y are the names of the quantities. */
const benchFitSchema = z.object({
  id: z.enum(['prompt', 'output', 'batch_ttft', 'batch_tpot']),
  x: z.string(),
  y: z.string(),
  unit: z.string(),
  coefficients: z
    .array(z.number())
    .describe('y = coefficients[0] + coefficients[1] x (+ coefficients[2] x²).'),
  coefficients_ci95: z
    .array(z.tuple([z.number(), z.number()]))
    .optional()
    .describe('95 % intervals of the coefficients (Student, by the scatter around the fit).'),
  n: z.number().int(),
  r2: z.number(),
  rms_error: z.number().describe('Root mean square of the residuals as a share of the mean of y.'),
  points: z.array(z.object({ x: z.number(), measured: z.number(), fitted: z.number() })),
});

/** A question about the results and its answer with numbers. */
const benchAnswerSchema = z.object({
  id: z.enum([
    'latency',
    'batch_knee',
    'scaling',
    'utilization',
    'prompt_cost',
    'output_cost',
    'regimes',
    'idle',
    'bound',
    'variants',
  ]),
  question: z.string(),
  answer: z.string(),
  figures: z.record(z.string(), figureSchema),
});

/** One engine configuration: an execution of the session. */
const benchVariantSchema = z.object({
  execution_id: z.string(),
  label: z.string().describe('`defaults`, or the engine arguments that differ, e.g. mode=cudagraph.'),
  engine_args: z.record(z.string(), z.string()),
  launches: z.number().int(),
  points: z.array(benchPointSchema),
  fits: z.array(benchFitSchema),
  answers: z.array(benchAnswerSchema),
  flags: z.array(benchFlagSchema),
});

export const benchResultSchema = z.object({
  session: sessionIdentitySchema.omit({ kind: true }),
  parts: z.array(z.enum(benchParts)),
  engine: z.object({
    name: z.string(),
    version: z.string().nullable(),
    model: z.string(),
    dtype: z.string().nullable(),
    quantization: z.string().nullable(),
    weights: z.string(),
    device: z.string(),
    device_name: z.string().nullable(),
    tensor_parallel_size: z.number().int(),
    threads: z.number().int().nullable(),
  }),
  protocol: z.object({
    launches: z.number().int(),
    repeats: z.number().int(),
    seed: z.number().int(),
    sampling: z.string(),
    warmup: z.string(),
  }),
  variants: z.array(benchVariantSchema),
  answers: z.array(benchAnswerSchema).describe('Answers that compare variants; empty with one.'),
  not_measured: z
    .array(z.object({ figure: z.string(), code: codeSchema<ReasonCode>(), text: z.string() }))
    .describe('What the engine could not measure, and why.'),
  telemetry: z
    .array(
      z.object({
        scope: z.string(),
        metric: z.string(),
        unit: z.string(),
        points: z.array(z.tuple([z.number(), z.number()])),
      }),
    )
    .optional()
    .describe(
      'Samples of host and GPUs during the run, thinned to what a chart shows; times since the session started.',
    ),
  environment: z
    .array(z.object({ id: z.string(), label: z.string(), value: z.string() }))
    .optional()
    .describe('Facts of the manifest about machine and software.'),
});

export const benchVersion = '1.1';
export const benchDocumentSchema = documentSchema('bench', benchVersion, benchResultSchema);

/** Facts known only during the run; saved in the session as artifact `bench-plan`. */
export const benchPlanSchema = z.object({
  parts: z.array(z.enum(benchParts)),
  protocol: benchResultSchema.shape.protocol,
  variants: z.array(
    z.object({
      execution_id: z.string(),
      label: z.string(),
      engine_args: z.record(z.string(), z.string()),
      points: z.array(
        z.object({
          point: z.string(),
          parts: z.array(z.enum(benchParts)),
          batch_size: z.number().int(),
          input_len: z.number().int(),
          output_len: z.number().int(),
        }),
      ),
    }),
  ),
  not_measured: benchResultSchema.shape.not_measured,
});

export type BenchSpread = z.infer<typeof benchSpreadSchema>;
export type BenchDistribution = z.infer<typeof benchDistributionSchema>;
export type BenchFlag = z.infer<typeof benchFlagSchema>;
export type BenchExpectation = z.infer<typeof benchExpectationSchema>;
export type BenchPointResult = z.infer<typeof benchPointSchema>;
export type BenchFit = z.infer<typeof benchFitSchema>;
export type BenchAnswer = z.infer<typeof benchAnswerSchema>;
export type BenchVariant = z.infer<typeof benchVariantSchema>;
export type BenchResult = z.infer<typeof benchResultSchema>;
export type BenchPlan = z.infer<typeof benchPlanSchema>;

export const benchFigures = ({ variants }: BenchResult): FigureRow[] =>
  variants.flatMap(({ label, points }) =>
    points.map(({ point, latency, throughput, machine, model_utilization }) => ({
      label: [...(variants.length > 1 ? [label] : []), point].join(' '),
      values: valuesOf({
        ttft_ms: latency.ttft_ms,
        tpot_ms: latency.tpot_ms,
        e2e_ms: latency.e2e_ms,
        output_tokens_per_s: throughput.output_tokens_per_s,
        decode_tokens_per_s: throughput.decode_tokens_per_s,
        memory_bytes: machine.memory_bytes,
        power_w: machine.power_w,
        prefill_mfu: model_utilization.prefill_mfu,
        decode_mbu: model_utilization.decode_mbu,
      }),
    })),
  );
