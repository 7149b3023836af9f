import { z } from 'zod';
import { opClasses } from '../classes.js';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { caseOutcomes } from '../kernels.js';
import { type FigureRow, valuesOf } from '../figure-rows.js';
import { sessionIdentitySchema } from './session-identity.js';

const count = z.number().int();

/** Position of a case in a sweep; null: its kernel has no such size. */
const sweepPointSchema = z.object({
  case: z.string(),
  series: z.string(),
  batch_size: count.nullable(),
  seq_len: count.nullable(),
  hidden_size: count.nullable(),
  dtype: z.string(),
  backend: z.string().nullable(),
});

/** Facts about the measured device reported by the framework; null if not reported. */
export const kernelDeviceSchema = z.object({
  name: z.string(),
  device: z.string(),
  framework: z.string(),
  sm_count: z.number().nullable(),
  l2_bytes: z.number().nullable(),
  memory_bytes: z.number().nullable(),
  compute_capability: z.string().nullable(),
  driver: z.string().nullable(),
});

const stepOpSchema = z.object({
  name: z.string(),
  count,
  case: z.string().nullable(),
  reason: z.string().nullable(),
  flops: z.number(),
  bytes: z.number(),
});

const stepSchema = z.object({
  phase: z.enum(['prefill', 'decode']),
  batch_size: count,
  new_tokens: count,
  context_tokens: count,
  ops: z.array(stepOpSchema),
});

/** Facts known only during the run; saved as the artifact `kernel-plan` of its session. */
export const kernelPlanSchema = z.object({
  engine: z.object({ name: z.string(), version: z.string().nullable() }),
  device: z.string().describe('cpu, cuda:0'),
  device_facts: kernelDeviceSchema
    .nullable()
    .describe('As the framework reports it; null if no process got that far.'),
  threads: count.nullable(),
  scope: z
    .string()
    .nullable()
    .describe('Its scope in the samples: gpu1 may be cuda:0 (CUDA_VISIBLE_DEVICES); null on a CPU.'),
  protocol: z.object({
    runs: count,
    max_runs: count,
    max_seconds: z.number().describe('Time limit of a case, s.'),
    target_half_width: z.number(),
    graph: z.enum(['auto', 'always', 'never']),
    check: z.boolean(),
    seed: count,
  }),
  points: z.array(sweepPointSchema),
  traces: z
    .array(z.object({ capture_id: z.string(), case: z.string().nullable() }))
    .default([])
    .describe(
      'With --trace: captures with the operators and kernels of the cases; `case` if the capture is of a single one (1.1).',
    ),
  model: z
    .object({ name: z.string(), dtype: z.string(), steps: z.array(stepSchema) })
    .nullable()
    .describe('null: kernels were named, no model.'),
});

const kernelCaseSchema = z.object({
  case: z.string(),
  kernel: z.string(),
  class: z.enum(opClasses),
  backend: z.string().nullable(),
  dtype: z.string(),
  params: z.record(z.string(), z.number()),
  outcome: z.enum(caseOutcomes),
  text: z.string().nullable().describe('Why it was not measured, or what is doubtful.'),
  flops: z.number(),
  bytes: z.number(),
  runs: count,
  mean_ns: figureSchema.describe(
    'ns of one operation, with the 95 % interval of the mean over the runs of this process.',
  ),
  median_ns: z
    .number()
    .nullable()
    .describe('Null when it was not measured; percentiles are linear (type 7).'),
  min_ns: z.number().nullable(),
  max_ns: z.number().nullable(),
  sd_ns: z.number().nullable(),
  p5_ns: z.number().nullable(),
  p95_ns: z.number().nullable(),
  bytes_per_s: z.number().nullable().describe('At the median time.'),
  flops_per_s: z.number().nullable(),
  intensity: z.number().nullable().describe('FLOP per byte; null where nothing is computed.'),
  roof_ns: figureSchema.describe(
    'Least time the roofs allow: max(FLOPs / peak, bytes / bandwidth); for kernels without matrix multiplications only the bytes.',
  ),
  working_set_bytes: z.number().describe('Bytes that its copies hold together (1.2).'),
  roof_level: z
    .string()
    .nullable()
    .describe('Level of the memory hierarchy that holds them; null on a GPU (1.2).'),
  roof_bytes_per_s: figureSchema.describe(
    'Bandwidth of that level at this working set: the roof of every kernel that moves bytes (1.2).',
  ),
  roof_share: figureSchema.describe('roof_ns / median.'),
  bound: z
    .enum(['memory', 'compute', 'latency'])
    .nullable()
    .describe('What limits it; latency: one launch takes longer than the roofs allow.'),
  method: z.enum(['events', 'graph', 'host']).nullable(),
  per_sample: count.nullable(),
  rotated_bytes: z.number().nullable(),
  peak_memory_bytes: figureSchema,
  max_error: z
    .number()
    .nullable()
    .describe(
      'Against float64: largest difference over the largest magnitude; null when it was not compared.',
    ),
  clock_mhz: figureSchema,
  power_w: figureSchema,
  throttled_by: z.array(z.string()).describe('Reasons that throttled the clocks during it.'),
  executed: z
    .array(
      z.object({
        what: z.enum(['kernel', 'operator']),
        name: z.string(),
        class: z.enum(opClasses).nullable(),
        count: z.number().describe('In one run.'),
        ns: z.number().describe('In one run: device time of a kernel, self time of an operator.'),
      }),
    )
    .nullable()
    .optional()
    .describe(
      'Kernels or operators of one run in a trace (--trace), longest first; null where it was not traced (1.1).',
    ),
});

/** A table of medians over two swept sizes. */
const kernelMapSchema = z.object({
  series: z.string(),
  fixed: z.string().describe('What all its cases share, in words.'),
  x: z.object({ name: z.string(), values: z.array(z.string()) }),
  y: z.object({ name: z.string(), values: z.array(z.string()) }),
  cells: z
    .array(z.object({ x: count, y: count, case: z.string() }))
    .describe('One per cell that has a case; x and y are indices into the values.'),
});

const kernelStepSchema = stepSchema.omit({ ops: true }).extend({
  ops: z.array(
    stepOpSchema.extend({
      total_ns: z.number().nullable().describe('count × median of the case; null when it was not measured.'),
      roof_ns: z.number().nullable().describe('count × time at the roofs.'),
    }),
  ),
  measured_ns: figureSchema.describe('Σ count × median: operation after operation, without the host.'),
  roof_ns: figureSchema,
  measured_ops: count.describe('Number of operations in the sum; missing_ops: number of those not in it.'),
  missing_ops: count,
});

const kernelsSchema = z.object({
  session: sessionIdentitySchema.omit({ kind: true }),
  plan: kernelPlanSchema.omit({ points: true, model: true, traces: true }),
  model: z.object({ name: z.string(), dtype: z.string() }).nullable(),
  roofs: z
    .object({
      compute: z.array(z.object({ dtype: z.string(), flops_per_s: figureSchema })),
      bytes_per_s: figureSchema.describe(
        'Memory bandwidth; on a CPU each case has that of its own cache level (roof_level, roof_bytes_per_s).',
      ),
      levels: z
        .array(z.object({ level: z.string(), low_bytes_per_s: z.number(), high_bytes_per_s: z.number() }))
        .describe(
          "Levels that hold the cases' working sets, with the bandwidths they are judged by; empty on a GPU (1.2).",
        ),
      launch_ns: figureSchema,
    })
    .describe('Roofs that the shares refer to; `source` names the measurement or the data sheet.'),
  cases: z.array(kernelCaseSchema),
  maps: z.array(kernelMapSchema),
  steps: z.array(kernelStepSchema),
});

export const kernelsVersion = '1.2';
export const kernelsDocumentSchema = documentSchema('kernels', kernelsVersion, kernelsSchema);

export type KernelPlan = z.infer<typeof kernelPlanSchema>;
export type KernelResult = z.infer<typeof kernelCaseSchema>;
export type KernelMap = z.infer<typeof kernelMapSchema>;
export type KernelStep = z.infer<typeof kernelStepSchema>;
export type KernelsResult = z.infer<typeof kernelsSchema>;

export const kernelFigures = ({ cases }: KernelsResult): FigureRow[] =>
  cases.map(({ case: label, median_ns, bytes_per_s, flops_per_s, roof_share, peak_memory_bytes }) => ({
    label,
    values: valuesOf({ median_ns, bytes_per_s, flops_per_s, roof_share, peak_memory_bytes }),
  }));
