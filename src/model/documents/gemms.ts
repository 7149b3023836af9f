import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

const tilingSchema = z.object({
  tile: z
    .string()
    .describe(
      'Tile as the library writes it: rows belong to its own m, which is our n (docs/reference/capture-formats.md).',
    ),
  calls: z.number().int(),
  tiles: figureSchema.describe('Tiles of the output, over batch and split K.'),
  tile_efficiency: figureSchema.describe(
    "Share of the tiles' area that is output, 0 to 1: the rest is edge.",
  ),
  waves: figureSchema.describe('tiles / SMs, one tile on an SM at a time.'),
  wave_efficiency: figureSchema.describe(
    'waves / (waves rounded up), 0 to 1: SMs idle in the last wave are the rest.',
  ),
});

/** Roofline time of one call: the longer of FLOPs / peak and bytes / bandwidth. */
const gemmRoofSchema = z.object({
  time_ns: figureSchema,
  share: figureSchema.describe('time_ns / mean time of a call, 0 to 1.'),
  bound: z.enum(['compute', 'memory']).nullable(),
  from: z
    .enum(['measured', 'sheet'])
    .nullable()
    .describe("Whether peak and bandwidth were measured, or are the data sheet's."),
});

/** Predicted effect of another size, under the model named in `text`. */
const gemmWhatIfSchema = z.object({
  change: z
    .enum(['rows', 'align', 'fill_n'])
    .describe(
      "rows: more tokens per call. align: N or K at multiples of 16 bytes. fill_n: output features up to the tiles' edge.",
    ),
  m: z.number(),
  n: z.number(),
  k: z.number(),
  time_ratio: figureSchema.describe('Predicted time / current time of a call.'),
  rate_ratio: figureSchema.describe(
    'Predicted useful work per second / current: rows (rows), calls (align), output features (fill_n).',
  ),
  text: z.string(),
});

const gemmSchema = z.object({
  source: z
    .enum(['profiler', 'cublas-log', 'cublaslt-log', 'log'])
    .describe(
      "profiler: operators' shapes with their kernels' time. Logs have shapes and algorithms and no times.",
    ),
  execution_id: z.string(),
  capture_id: z.string(),
  m: z
    .number()
    .describe(
      'Rows (tokens) × columns (output features), inner dimension: row-major, as frameworks mean it.',
    ),
  n: z.number(),
  k: z.number(),
  batch: z.number(),
  dtype: z.string().nullable(),
  compute_type: z.string().nullable(),
  layout: z.string().nullable(),
  calls: z.number().int(),
  made_by: z
    .array(z.object({ name: z.string(), calls: z.number().int() }))
    .describe("Operators (profiler), or functions' algorithms (logs), most calls first."),
  stages: z.array(z.string()).describe('Stages it ran in: prefill, decode, …; empty for logs.'),
  flop: z.number().describe('2·M·N·K·batch of one call.'),
  arithmetic_intensity: figureSchema.describe('FLOP / bytes of A, B and the output, each moved once.'),
  total_time_ns: figureSchema,
  achieved_flops: figureSchema.describe(
    "FLOP / time; for a log's shape the time is that of the profiler's row of the same shape.",
  ),
  peak_share: figureSchema.describe('achieved / dense data-sheet peak of the dtype, 0 to 1.'),
  tilings: z
    .array(tilingSchema)
    .describe('Tiles used, most calls first; empty where no name or log shows them.'),
  alignment_faults: z
    .array(z.string())
    .describe(
      'Dimensions that keep tensor cores from loading 16 bytes at once, in words; empty when there are none.',
    ),
  roof: gemmRoofSchema.optional().describe('1.1'),
  what_if: z
    .array(gemmWhatIfSchema)
    .optional()
    .describe('What padding or another batch would give (1.1); empty where nothing would.'),
});

const gemmsResultSchema = z.object({
  gpu: z.string().nullable(),
  sm_count: figureSchema,
  stage: z.string().optional().describe('Only GEMMs of this stage (1.1); absent: all.'),
  gemms: z
    .array(gemmSchema)
    .describe(
      'By time, then by FLOP. Rows of different sources are never summed: they may be the same calls.',
    ),
});

export const gemmsVersion = '1.1';
export const gemmsDocumentSchema = documentSchema('gemms', gemmsVersion, gemmsResultSchema);

export type Tiling = z.infer<typeof tilingSchema>;
export type GemmRoof = z.infer<typeof gemmRoofSchema>;
export type GemmWhatIf = z.infer<typeof gemmWhatIfSchema>;
export type Gemm = z.infer<typeof gemmSchema>;
export type GemmsResult = z.infer<typeof gemmsResultSchema>;
