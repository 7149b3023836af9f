import { z } from 'zod';
import { opClasses } from '../classes.js';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { phaseKindSchema } from './trace-phase.js';

const count = z.number().int();

/** Operations of one name in a mean step; FLOPs and bytes are summed over them. */
const necessaryWorkSchema = z.object({
  name: z.string().describe('q_proj …, attention, lm_head; src/llm.'),
  class: z.enum(opClasses),
  dtype: z.string(),
  ops: count.describe('Number of them in a step: one per layer that has it, or one.'),
  flops: z.number(),
  bytes: z.number(),
});

/** Executed work, from the shapes of the GEMMs in the same stages. */
const executedWorkSchema = z.object({
  source: z
    .enum(['operators', 'gemm-log'])
    .nullable()
    .describe(
      'operators: input shapes of a profiler. gemm-log: cuBLAS or cuBLASLt log of another execution; null when missing.',
    ),
  gemm_flops: figureSchema.describe('Σ 2·M·N·K·batch of a mean step.'),
  attention_flops: figureSchema.describe(
    "The model's attention (causal), where it ran fused, so that no GEMM has its shape; else 0.",
  ),
  flops: figureSchema,
  mfu: figureSchema.describe('MFU of the executed work: these FLOPs / t / peak.'),
  over_necessary: figureSchema.describe('executed / necessary FLOPs.'),
  gemm_time_covered: z
    .number()
    .nullable()
    .describe("Share of the GEMM kernels' time with known shapes; null without kernels."),
  text: z.string().nullable().describe('What the ratio says, in a sentence; null when there is none.'),
});

const utilizationStepSchema = z.object({
  iteration: count.nullable(),
  step_index: count.nullable(),
  wall_ns: z.number(),
  new_tokens: z.number(),
  context_tokens_sum: z.number(),
  flops: z.number(),
  bytes: z.number(),
  mfu: z.number().nullable().describe('Null where the figure of the stage is missing.'),
  mbu: z.number().nullable(),
});

/** Steps of one kind and batch size (or of one benchmark point) in one execution. */
const utilizationStageSchema = z.object({
  execution_id: z.string(),
  kind: phaseKindSchema,
  batch_size: count.nullable(),
  point: z.string().nullable().describe('Benchmark point; null without a benchmark.'),
  steps: count,
  time_ms: figureSchema.describe('Mean measured time of a step (docs/concepts/stages-and-clocks.md).'),
  profiled: z
    .boolean()
    .describe('Whether that was taken under a profiler: no clean execution timed the stage.'),
  new_tokens: z
    .number()
    .nullable()
    .describe('Tokens that a mean step computes, over the batch; null where they are not known.'),
  context_tokens_sum: z
    .number()
    .nullable()
    .describe('Tokens that it attends to, summed over the batch; null where they are not known.'),
  sizes_from: z.string().describe('Where sizes come from, in words.'),
  tokens_per_s: figureSchema,
  flops: figureSchema,
  bytes: figureSchema,
  peak_flops_per_s: figureSchema.describe('Dense peak of its dtype; for several dtypes FLOPs / Σ F/P.'),
  peak_bandwidth_bytes_per_s: figureSchema,
  mfu: figureSchema.describe("FLOPs / t / peak, with the FLOPs of the model's arithmetic."),
  mbu: figureSchema,
  bound: z.enum(['compute', 'memory']).nullable(),
  roof_ms: figureSchema.describe('max(FLOPs / measured peak, bytes / measured bandwidth).'),
  roof_share: figureSchema.describe('roof_ms / t: share of the measured roof that the stage reaches.'),
  work: z.array(necessaryWorkSchema),
  executed: executedWorkSchema,
});

export const utilizationSchema = z.object({
  model: z
    .object({
      name: z.string(),
      dtype: z.string(),
      /** Sources of the model's name and of its dtype. */
      from: z.string(),
    })
    .nullable(),
  device: z.object({
    name: z.string().nullable(),
    kind: z.enum(['gpu', 'cpu']),
    devices: count.describe('Devices that shared the work: peaks are of all together.'),
  }),
  stages: z.array(utilizationStageSchema),
});

const utilizationResultSchema = utilizationSchema.extend({
  session: z.object({ id: z.string(), name: z.string().nullable(), title: z.string() }),
  steps: z.array(z.array(utilizationStepSchema)).describe('In the order of `stages`; the first 512 of each.'),
});

export const utilizationVersion = '1.1';
export const utilizationDocumentSchema = documentSchema(
  'utilization',
  utilizationVersion,
  utilizationResultSchema,
);

export type NecessaryWork = z.infer<typeof necessaryWorkSchema>;
export type ExecutedWork = z.infer<typeof executedWorkSchema>;
export type UtilizationStep = z.infer<typeof utilizationStepSchema>;
export type UtilizationStage = z.infer<typeof utilizationStageSchema>;
export type Utilization = z.infer<typeof utilizationSchema>;
export type UtilizationResult = z.infer<typeof utilizationResultSchema>;
