import { z } from 'zod';
import { opClasses } from '../classes.js';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';
import { type FigureRow, valuesOf } from '../figure-rows.js';

export const launches = ['eager', 'graph'] as const;
export type Launch = (typeof launches)[number];
/** none: as in Hugging Face transformers; standard: as in serving engines; full: norms and activations fused into the GEMMs. */
export const fusions = ['none', 'standard', 'full'] as const;
export type Fusion = (typeof fusions)[number];

const predictAssumptionSchema = z.object({ id: z.string(), text: z.string() });

/** Kernels of one operation of a stage, summed over all layers. */
const predictOpSchema = z.object({
  op: z
    .string()
    .describe(
      'qkv_proj, attention, … of docs/concepts/llm-arithmetic.md; other operations have their own names: kv_cache_copy, …',
    ),
  class: z.enum(opClasses),
  kernel: z.string(),
  params: z.record(z.string(), z.number()),
  count: z.number().int().describe('Times in the stage.'),
  kernels: z.number().describe('Kernels on the device, all together.'),
  roofline_us: z.number().describe('Time of one call at the roofs.'),
  predicted_us: z.number().nullable().describe('Time of one call by the table.'),
  method: z
    .enum(['measured', 'interpolated', 'extrapolated', 'assumed'])
    .nullable()
    .describe(
      'measured: this very case. interpolated: between cases. extrapolated: beyond them, or from other shapes alone. assumed: no case of such a kernel; its bytes at a usual share of the bandwidth. Null without a table.',
    ),
});

/** A part of the difference between measurement and prediction; parts sum to it. */
const residualSchema = z.object({
  cause: z.enum([
    'launch-bound',
    'unfused-elementwise',
    'attention',
    'gemm',
    'sampling',
    'host',
    'unattributed',
  ]),
  ms: z.number(),
  text: z.string(),
});

const measuredStageSchema = z.object({
  session: z.string(),
  what: z.string().describe('Variant or stage in the session.'),
  ms: figureSchema,
  roofline_ratio: figureSchema.describe('Prediction / measurement.'),
  table_ratio: figureSchema,
  launched_ratio: figureSchema.describe(
    'launched_ms / measurement: the prediction where no kernel table is given (1.1).',
  ),
  above_measurement: z
    .boolean()
    .describe('True when the roofline alone is above the measurement: model, dtype or peaks are wrong.'),
  residual: z.array(residualSchema),
});

const predictStageSchema = z.object({
  phase: z.enum(['prefill', 'decode']),
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  launch: z.enum(launches),
  fusion: z.enum(fusions),
  kernels: z.number(),
  flops: z.number(),
  bytes: z.number(),
  bound: z.enum(['compute', 'memory']).nullable(),
  roofline_ms: figureSchema.describe('(a) max(Σ F/P, Σ B/BW): nothing is faster.'),
  roofline_serial_ms: figureSchema.describe('Σ over operations of max(F/P, B/BW): one after another.'),
  launched_ms: figureSchema.describe(
    "(a) with launches as assumed: every kernel takes its roofline time, in a graph at least the time of a node; the host's time where that is longer.",
  ),
  launched_range_ms: z
    .tuple([z.number(), z.number()])
    .nullable()
    .describe(
      '95 % of measurements are expected between these, by recorded stages of this engine and device; null: not calibrated (1.1).',
    ),
  predicted_ms: figureSchema.describe('(b) by the measured kernels, composed under the assumptions.'),
  predicted_error: z
    .number()
    .nullable()
    .describe(
      "Error if all kernels erred the same way: each one's share × its error, the 95 % interval of a measured case, else the leave-one-out error. Null without a table.",
    ),
  device_ms: figureSchema,
  host_ms: figureSchema,
  beyond_table_share: z
    .number()
    .nullable()
    .describe(
      'Share of the device time in kernels that were extrapolated or assumed, not measured or interpolated.',
    ),
  limited_by: z.enum(['device', 'host']).describe('What takes longer by the table, else by `launched_ms`.'),
  ops: z.array(predictOpSchema),
  measured: z.array(measuredStageSchema),
});

/** Leave-one-out: each case predicted from all others. */
const crossValidationSchema = z.object({
  kernel: z.string(),
  cases: z.number().int(),
  median_error: z.number().describe('Median of |predicted / measured − 1|.'),
  worst_error: z.number(),
  worst_case: z.string(),
});

const predictCalibrationSchema = z.object({
  status: z.enum(['recorded', 'not_calibrated']),
  low_ratio: z
    .number()
    .nullable()
    .describe(
      'Measured / launched_ms: holds 95 % of measurements with 95 % confidence, by the recorded stages.',
    ),
  high_ratio: z.number().nullable(),
  stages: z.number().int(),
  source: z.string().nullable(),
});

const predictResultSchema = z.object({
  model: z.object({ name: z.string(), family: z.string(), layers: z.number().int(), parameters: z.number() }),
  dtype: z.string(),
  weight_format: z.string(),
  device: z.object({
    kind: z.enum(['gpu', 'cpu']),
    name: z.string(),
    roofs: z.enum(['measured', 'data-sheet']),
    peak_flops_per_s: figureSchema,
    peak_dtype: z.string().optional().describe('The dtype of that peak: what the GEMMs compute in (1.2).'),
    bandwidth_bytes_per_s: figureSchema.describe(
      'At the working set of the first decode step: weights and KV cache, as in explain.',
    ),
    bandwidth_level: z
      .string()
      .nullable()
      .optional()
      .describe("The memory level that holds this working set; null: a GPU's memory (1.3)."),
    launch_ns: figureSchema,
    graph_node_ns: figureSchema,
  }),
  table: z
    .object({
      sessions: z.array(z.string()),
      cases: z.number().int(),
      validation: z.array(crossValidationSchema),
    })
    .nullable(),
  assumptions: z.array(predictAssumptionSchema),
  not_modeled: z.array(z.string()),
  stages: z.array(predictStageSchema),
  calibration: predictCalibrationSchema.describe(
    'How far launched_ms has been from measurements, for stages without a kernel table (1.1).',
  ),
  error: z
    .object({
      predicted_by: z.enum(['table', 'launched']),
      stages: z.number().int(),
      median: z.number(),
      worst: z.number(),
      decode_median: z.number().nullable(),
      decode_worst: z.number().nullable(),
    })
    .nullable()
    .describe(
      'Over the stages with both: |prediction / measurement − 1| by the table, or by launched_ms without one.',
    ),
});

export const predictVersion = '1.3';
export const predictDocumentSchema = documentSchema('predict', predictVersion, predictResultSchema);

export type PredictAssumption = z.infer<typeof predictAssumptionSchema>;
export type PredictOp = z.infer<typeof predictOpSchema>;
export type Residual = z.infer<typeof residualSchema>;
export type MeasuredStage = z.infer<typeof measuredStageSchema>;
export type PredictStage = z.infer<typeof predictStageSchema>;
export type CrossValidation = z.infer<typeof crossValidationSchema>;
export type PredictCalibration = z.infer<typeof predictCalibrationSchema>;
export type PredictResult = z.infer<typeof predictResultSchema>;

/** Figures by stage; its sizes are in the label if stages have several. */
export const predictFigures = ({ stages }: PredictResult): FigureRow[] => {
  const sizes = stages.map(({ batch_size, input_len }) => `batch ${batch_size}, ${input_len} in`);
  const isSame = new Set(sizes).size === 1;
  return stages.map(({ phase, predicted_ms, launched_ms, roofline_ms }, index) => ({
    label: isSame ? phase : `${phase}, ${sizes[index]}`,
    values: valuesOf({ predicted_ms, launched_ms, roofline_ms }),
  }));
};
