import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

export const tilingSchema = z.object({
  /** Tile as the library writes it: rows belong to its own m, which is our n (docs/formats.md, gemms). */
  tile: z.string(),
  calls: z.number().int(),
  /** Tiles of the output, over batch and split K. */
  tiles: figureSchema,
  /** Share of the tiles' area that is output, 0 to 1: the rest is edge. */
  tile_efficiency: figureSchema,
  /** tiles / SMs, one tile on an SM at a time. */
  waves: figureSchema,
  /** waves / whole waves, 0 to 1: SMs idle in the last wave are the rest. */
  wave_efficiency: figureSchema,
});

/** What the hardware allows one call: the longer of FLOPs / peak and bytes / bandwidth. */
export const gemmRoofSchema = z.object({
  time_ns: figureSchema,
  /** time_ns / mean time of a call, 0 to 1. */
  share: figureSchema,
  bound: z.enum(['compute', 'memory']).nullable(),
  /** Whether peak and bandwidth were measured, or are the data sheet's. */
  from: z.enum(['measured', 'sheet']).nullable(),
});

/** Another size, and what it would give under the model that `text` names. */
export const gemmWhatIfSchema = z.object({
  /** rows: more tokens a call. align: N or K at multiples of 16 bytes. fill_n: output features up to the tiles' edge. */
  change: z.enum(['rows', 'align', 'fill_n']),
  m: z.number(),
  n: z.number(),
  k: z.number(),
  /** Predicted time / time now of a call. */
  time_ratio: figureSchema,
  /** Predicted useful work a second / now: rows (rows), calls (align), output features (fill_n). */
  rate_ratio: figureSchema,
  text: z.string(),
});

export const gemmSchema = z.object({
  /** profiler: operators' shapes with their kernels' time. Logs have shapes and algorithms and no times. */
  source: z.enum(['profiler', 'cublas-log', 'cublaslt-log', 'log']),
  execution_id: z.string(),
  capture_id: z.string(),
  /** Rows (tokens) × columns (output features), inner dimension: row-major, as frameworks mean it. */
  m: z.number(),
  n: z.number(),
  k: z.number(),
  batch: z.number(),
  dtype: z.string().nullable(),
  compute_type: z.string().nullable(),
  layout: z.string().nullable(),
  calls: z.number().int(),
  /** Operators (profiler), or functions' algorithms (logs), most calls first. */
  made_by: z.array(z.object({ name: z.string(), calls: z.number().int() })),
  /** Stages it ran in: prefill, decode, …; empty for logs. */
  stages: z.array(z.string()),
  /** 2·M·N·K·batch of one call. */
  flop: z.number(),
  /** FLOP / bytes of A, B and the output, each moved once. */
  arithmetic_intensity: figureSchema,
  total_time_ns: figureSchema,
  /** FLOP / time; for a log's shape the time is that of the profiler's row of the same shape. */
  achieved_flops: figureSchema,
  /** achieved / dense data-sheet peak of the dtype, 0 to 1. */
  peak_share: figureSchema,
  /** Tiles used, most calls first; empty where no name or log tells. */
  tilings: z.array(tilingSchema),
  /** Dimensions that keep tensor cores from loading 16 bytes at once, in words; empty when there are none. */
  alignment_faults: z.array(z.string()),
  /** 1.1 */
  roof: gemmRoofSchema.optional(),
  /** What padding or another batch would give (1.1); empty where nothing would. */
  what_if: z.array(gemmWhatIfSchema).optional(),
});

export const gemmsResultSchema = z.object({
  gpu: z.string().nullable(),
  sm_count: figureSchema,
  /** Only products of this stage (1.1); absent: of all. */
  stage: z.string().optional(),
  /** By time, then by FLOP. Rows of different sources are never summed: they may be the same calls. */
  gemms: z.array(gemmSchema),
});

export const gemmsVersion = '1.1';
export const gemmsDocumentSchema = documentSchema('gemms', gemmsVersion, gemmsResultSchema);

export type Tiling = z.infer<typeof tilingSchema>;
export type GemmRoof = z.infer<typeof gemmRoofSchema>;
export type GemmWhatIf = z.infer<typeof gemmWhatIfSchema>;
export type Gemm = z.infer<typeof gemmSchema>;
export type GemmsResult = z.infer<typeof gemmsResultSchema>;
