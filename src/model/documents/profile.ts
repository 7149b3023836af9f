import { z } from 'zod';
import { opClasses } from '../classes.js';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { workloadSchema } from '../manifest.js';
import { machineRooflineSchema } from './roofline.js';
import { traceTimelineSchema } from './trace-timeline.js';
import { type FigureRow, valuesOf } from '../figure-rows.js';

const opClass = z.enum(opClasses);

const latencySchema = z.object({
  repeats: z.number().int().describe('Timed repeats, and the process launches they are spread over.'),
  launches: z.number().int(),
  warmup_repeats: z.number().int(),
  ttft_ms: figureSchema,
  tpot_ms: figureSchema,
  e2e_ms: figureSchema,
  decode_tokens_per_s: figureSchema.describe('batch × (output_len − 1) / decode time.'),
  prefill_tokens_per_s: figureSchema,
  output_tokens_per_s: figureSchema.describe('batch × output_len / e2e.'),
  per_repeat: z
    .array(
      z.object({
        iteration: z.number().int(),
        launch: z.number().int(),
        ttft_ms: z.number(),
        tpot_ms: z.number().nullable(),
        e2e_ms: z.number(),
        outlier: z.boolean(),
      }),
    )
    .describe('One entry per repeat, in the order they ran.'),
  decode_step_percentiles_ms: z
    .object({
      p5: z.number(),
      p50: z.number(),
      p90: z.number(),
      p95: z.number(),
      p99: z.number(),
      max: z.number(),
    })
    .nullable()
    .describe('Step period over all timed decode steps, ms: percentiles are linear (type 7).'),
  decode_step_by_index_ms: z
    .array(z.number())
    .describe('Mean step period by step index: shows the growth with context.'),
});

const classRowSchema = z.object({
  class: opClass,
  calls: z.number(),
  ms: z.number(),
  share: z.number().describe("Share of the stage's profiled time."),
  necessary_flops: z
    .number()
    .nullable()
    .describe(
      'Necessary work of this class (model arithmetic); null where the class has none or there is no model.',
    ),
  necessary_bytes: z.number().nullable(),
  necessary_ms: z
    .number()
    .nullable()
    .describe("max(F/P, B/BW) summed over the class's necessary operations, ms."),
  intensity_flop_per_byte: z.number().nullable(),
  achieved_flops_per_s: z.number().nullable(),
  achieved_bytes_per_s: z.number().nullable(),
  bound: z.enum(['compute', 'memory']).nullable(),
});

const breakdownSchema = z.object({
  instances: z.number().int().describe('Stage instances averaged over, in the profiled execution.'),
  stage_ms: z
    .number()
    .describe('Mean profiled duration of one instance, ms; equals operators + gaps + remainder.'),
  operators_ms: z.number(),
  gaps_between_operators_ms: z.number().describe('Between two operators, inside the runtime.'),
  gaps_at_edges_ms: z
    .number()
    .describe(
      'From the call to the first operator and from the last operator to the return: binding, inputs, outputs.',
    ),
  remainder_ms: z.number(),
  by_class: z.array(classRowSchema),
  by_layer: z.array(
    z.object({
      layer: z
        .number()
        .int()
        .nullable()
        .describe('null: outside the decoder layers (embedding, final norm, lm_head).'),
      ms: z.number(),
      by_class: z.array(z.object({ class: opClass, ms: z.number() })),
    }),
  ),
  top_operators: z.array(
    z.object({
      name: z.string(),
      op_type: z.string(),
      class: opClass,
      layer: z.number().int().nullable(),
      calls: z.number(),
      ms: z.number(),
      share: z.number(),
      input_shapes: z.string().nullable(),
    }),
  ),
});

const stageResultSchema = z.object({
  kind: z.enum(['prefill', 'decode', 'sampling']),
  instances: z.number().int().describe('Instances in the clean execution.'),
  duration_ms: figureSchema.describe('Clean execution; interval over repeats.'),
  tokens_per_s: figureSchema,
  profiled_ms: figureSchema,
  profiler_overhead_ms: figureSchema,
  flops: figureSchema.describe("Necessary work of a mean instance, from the model's arithmetic."),
  bytes: figureSchema,
  intensity_flop_per_byte: figureSchema,
  working_set_bytes: figureSchema,
  bandwidth_bytes_per_s: figureSchema.describe(
    'Bandwidth at that working set, and the level it was measured in.',
  ),
  bandwidth_level: z.string().nullable(),
  mfu: figureSchema,
  mbu: figureSchema,
  bound: z.enum(['compute', 'memory']).nullable(),
  roofline_ms: figureSchema,
  breakdown: breakdownSchema.nullable(),
});

const memoryResultSchema = z.object({
  baseline_bytes: figureSchema,
  post_warmup_bytes: figureSchema,
  peak_bytes: figureSchema,
  breakdown: z.array(
    z.object({
      component: z.enum(['weights', 'kv_cache', 'activations', 'runtime', 'residual']),
      bytes: z.number(),
      confidence: z.enum(['high', 'medium', 'low']),
      evidence: z.string(),
    }),
  ),
  series: z
    .array(z.object({ t_ms: z.number(), bytes: z.number() }))
    .describe("Resident set over time, ms since the session's start."),
  marks: z.array(
    z.object({ t_ms: z.number(), point: z.enum(['baseline', 'post_warmup', 'peak']), bytes: z.number() }),
  ),
  phases: z
    .array(z.object({ label: z.string(), start_ms: z.number(), end_ms: z.number() }))
    .describe("What ran when, for the chart's background."),
});

const telemetryResultSchema = z.object({
  sample_hz: figureSchema,
  cpu_percent: figureSchema.describe('Mean while the timed repeats ran.'),
  other_processes_cpu_percent: figureSchema,
  clock_mhz: figureSchema,
  series: z.array(
    z.object({
      scope: z.string(),
      metric: z.string(),
      unit: z.string(),
      points: z.array(z.tuple([z.number(), z.number()])),
    }),
  ),
});

const profileResultSchema = z.object({
  session: z.object({
    id: z.string(),
    title: z.string(),
    started_at: z.string(),
    status: z.enum(['complete', 'interrupted', 'failed']),
  }),
  workload: workloadSchema,
  latency: latencySchema,
  stages: z.array(stageResultSchema),
  memory: memoryResultSchema.nullable(),
  telemetry: telemetryResultSchema.nullable(),
  timeline: traceTimelineSchema
    .nullable()
    .describe('One prefill and the first decode steps of the profiled execution, as in document trace.'),
  roofline: machineRooflineSchema.nullable(),
  environment: z.array(z.object({ id: z.string(), label: z.string(), value: z.string() })),
});

export const profileVersion = '3.0';
export const profileDocumentSchema = documentSchema('profile', profileVersion, profileResultSchema);

export type ProfileResult = z.infer<typeof profileResultSchema>;
export type StageResult = z.infer<typeof stageResultSchema>;
export type Breakdown = z.infer<typeof breakdownSchema>;
export type ClassRow = z.infer<typeof classRowSchema>;
export type LatencyResult = z.infer<typeof latencySchema>;
export type MemoryResult = z.infer<typeof memoryResultSchema>;
export type TelemetryResult = z.infer<typeof telemetryResultSchema>;

export const profileFigures = ({ latency, memory }: ProfileResult): FigureRow[] => [
  {
    label: null,
    values: valuesOf({
      ttft_ms: latency.ttft_ms,
      tpot_ms: latency.tpot_ms,
      e2e_ms: latency.e2e_ms,
      output_tokens_per_s: latency.output_tokens_per_s,
      ...(memory ? { peak_bytes: memory.peak_bytes } : {}),
    }),
  },
];
