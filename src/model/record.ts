import { z } from 'zod';
import { pointOutcomes } from './bench.js';
import { caseOutcomes } from './kernels.js';
import { modelFactsSchema, modelTensorSchema } from './model-facts.js';

/**
 * The recording protocol: a workload started with INFERSCOPE_RECORD=<file> appends JSON lines to that file. t_ns is CLOCK_MONOTONIC (Python
 * time.monotonic_ns(), Node process.hrtime.bigint()), an integer that is exact as a double for 104 days of uptime.
 * docs/reference/recording-protocol.md has an example of each line.
 */
const common = {
  v: z.literal(1),
  execution_id: z.string(),
  rank: z.number().int(),
  pid: z.number().int(),
  t_ns: z.number(),
};

export const stageKinds = [
  'prefill',
  'decode',
  'mixed',
  'training',
  'sampling',
  'load',
  'warmup',
  'other',
] as const;
export type StageKind = (typeof stageKinds)[number];

/** Stages that are one call of the model in inference. */
export const stepKinds = ['prefill', 'decode', 'mixed'] as const satisfies readonly StageKind[];
/** Kinds as the right side of SQL's IN. */
export const kindsSql = (kinds: readonly (StageKind | 'outside')[]): string =>
  `(${kinds.map((kind) => `'${kind}'`).join(', ')})`;
export const stepKindsSql = kindsSql(stepKinds);

const modelLineSchema = z.object({
  ...common,
  type: z.literal('model'),
  name: z.string(),
  config: z.record(z.string(), z.unknown()),
  dtype: z.string(),
  quantization: z.string().nullable(),
  weights: z.enum(['random', 'trained', 'unknown']),
  weight_bytes: z.number().nullable(),
  tensor_parallel_size: z.number().int().default(1),
  engine: z.object({ name: z.string(), version: z.string().nullable() }),
  device: z.string(),
  threads: z.number().int().nullable().default(null),
  facts: modelFactsSchema.optional(),
  tensors: z
    .array(modelTensorSchema)
    .optional()
    .describe('Weights of two dimensions and more; equal ones of numbered layers are listed once.'),
});

/** (monotonic, realtime) pair; one at the start and one at the end of each recorder. */
const clockLineSchema = z.object({ ...common, type: z.literal('clock'), realtime_ns: z.string() });

const stageLineSchema = z.object({
  ...common,
  type: z.literal('stage'),
  kind: z.enum(stageKinds),
  name: z.string(),
  end_ns: z.number(),
  iteration: z.number().int().nullable(),
  step: z.number().int().nullable(),
  batch_size: z.number().int().nullable(),
  new_tokens: z.number().int().nullable(),
  context_tokens_sum: z.number().int().nullable(),
  warmup: z.boolean(),
  marked_by: z
    .enum(['program', 'hooks'])
    .default('program')
    .describe('hooks: seen from outside by the hooks of `inferscope run`, in a program that marks nothing.'),
  first_of_shape: z
    .boolean()
    .default(false)
    .describe('Hooks: a first call of its model, kind and sizes, which may compile, plan and allocate.'),
  padding_tokens: z
    .number()
    .int()
    .nullable()
    .default(null)
    .describe('Positions of a prompt batch that are padding, by an attention mask on the host.'),
  device_start_ns: z
    .number()
    .nullable()
    .default(null)
    .describe(
      'When the device began it, by events, on a scale that starts with the first step of the process; null where nothing measures it.',
    ),
  device_dur_ns: z
    .number()
    .nullable()
    .default(null)
    .describe(
      'Between two events of the device around its work, ns (CUDA events); null where the engine has none.',
    ),
});

/** One request or batch, start (t_ns) to last token (end_ns). */
const requestLineSchema = z.object({
  ...common,
  type: z.literal('request'),
  iteration: z.number().int(),
  launch: z.number().int(),
  warmup: z.boolean(),
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  first_token_ns: z.number().nullable().describe('Null where the engine reports only the total time.'),
  end_ns: z.number(),
  tpot_ns: z
    .number()
    .nullable()
    .default(null)
    .describe(
      'Mean over the sequences of (last − first token) / (tokens − 1), for engines that do not run sequences in step; null where the times above give it.',
    ),
  point: z.string().nullable().default(null).describe('BenchPoint.point of a benchmark.'),
});

/** How a point of a benchmark ended in a launch, at t_ns. */
const pointLineSchema = z.object({
  ...common,
  type: z.literal('point'),
  point: z.string(),
  launch: z.number().int(),
  outcome: z.enum(pointOutcomes),
  text: z.string().nullable().default(null).describe("Why, in the engine's words; null when measured."),
  warmup_iterations: z.number().int().nullable().default(null),
  stable: z.boolean().nullable().default(null).describe('Whether warm-up settled within its bound.'),
  interleaved: z
    .boolean()
    .default(true)
    .describe('False when its repeats ran in a row because it did not fit in memory with the others.'),
  memory_bytes: z
    .number()
    .nullable()
    .default(null)
    .describe("Peak memory of the point on the device, model included, by the engine's own allocator."),
  memory_source: z.string().nullable().default(null),
});

/**
 * Device work of the stages of one kind in one iteration under the framework's profiler (after the timed ones). kernel_ns is the sum of
 * durations, busy_ns the union of their intervals, both over `stages` stages of that kind.
 */
const deviceWorkLineSchema = z.object({
  ...common,
  type: z.literal('device_work'),
  point: z.string(),
  launch: z.number().int(),
  kind: z.enum(stageKinds),
  stages: z.number().int(),
  kernels: z.number().int(),
  kernel_ns: z.number(),
  copies: z.number().int(),
  copy_ns: z.number(),
  busy_ns: z.number(),
  wall_ns: z.number().describe('Host time of these stages while they were watched.'),
});

const memoryLineSchema = z.object({
  ...common,
  type: z.literal('memory'),
  device: z.number().int().nullable(),
  kind: z.string(),
  bytes: z.number(),
  point: z.enum(['baseline', 'post_warmup', 'peak']).nullable(),
  source: z.string(),
  blocks: z.number().int().nullable().default(null).describe('Live blocks, for kind allocation.'),
});

/** Metrics of an engine or a server at one moment, by the names in server-metrics: kv_cache_usage_ratio, … */
const telemetryLineSchema = z.object({
  ...common,
  type: z.literal('telemetry'),
  scope: z.string().describe('engine, server, gpu0, …'),
  metric: z.string(),
  value: z.number(),
});

const errorLineSchema = z.object({
  ...common,
  type: z.literal('error'),
  code: z.string(),
  text: z.string(),
});

/** One case of a KernelOrder, timed from t_ns to end_ns. */
export const microbenchmarkLineSchema = z.object({
  ...common,
  type: z.literal('microbenchmark'),
  case: z.string().describe('KernelCase.case, and the case itself, as requested.'),
  kernel: z.string(),
  backend: z.string().nullable().default(null),
  dtype: z.string(),
  params: z.record(z.string(), z.number()),
  flops: z.number(),
  bytes: z.number(),
  device: z.number().int().nullable().default(null),
  threads: z.number().int().nullable().default(null),
  outcome: z.enum(caseOutcomes),
  text: z
    .string()
    .nullable()
    .default(null)
    .describe('Why it was not measured, or what is doubtful; null otherwise.'),
  end_ns: z.number(),
  samples_ns: z
    .array(z.number())
    .describe('Nanoseconds of one operation, one value per timed run; empty if it was not measured.'),
  method: z
    .enum(['events', 'graph', 'host'])
    .describe(
      'events: device events around runs. graph: around replays of a graph of many. host: a clock of the CPU.',
    ),
  per_sample: z.number().int().describe('Operations between two readings of the clock.'),
  rotated_bytes: z
    .number()
    .nullable()
    .default(null)
    .describe('Bytes of all copies of the inputs that runs take in turn.'),
  peak_memory_bytes: z.number().nullable().default(null),
  max_error: z
    .number()
    .nullable()
    .default(null)
    .describe('Against float64: largest |x − reference| over the largest |reference|.'),
});

/** An inferscope command inside the program saved its own session. */
const sessionLineSchema = z.object({
  ...common,
  type: z.literal('session'),
  id: z.string(),
  kind: z.string().describe('Kind of session: bench, memory, kernels, …'),
});

export const recordLineSchema = z.discriminatedUnion('type', [
  modelLineSchema,
  clockLineSchema,
  stageLineSchema,
  requestLineSchema,
  memoryLineSchema,
  errorLineSchema,
  pointLineSchema,
  deviceWorkLineSchema,
  telemetryLineSchema,
  microbenchmarkLineSchema,
  sessionLineSchema,
]);

/** Line types of this version; lines of other types are counted and skipped. */
export const recordLineTypes: readonly string[] = recordLineSchema.options.map(
  (option) => option.shape.type.value,
);

export type RecordLine = z.infer<typeof recordLineSchema>;
/** As writers provide it: fields with a default may be missing. */
export type RecordLineInput = z.input<typeof recordLineSchema>;
export type MicrobenchmarkLine = z.infer<typeof microbenchmarkLineSchema>;
export type RequestLine = z.infer<typeof requestLineSchema>;
export type SessionLineInput = z.input<typeof sessionLineSchema>;
export type ModelLine = z.infer<typeof modelLineSchema>;
