import { z } from 'zod';
import { documentSchema } from '../document.js';

/** Metrics in result files of benchmark tools, each with its definition. */
const resultStatisticSchema = z.object({
  statistic: z
    .string()
    .describe(
      'value, mean, median, sd (n − 1), sd_population, min, max, p99 (type 7), p99_step (not interpolated), …',
    ),
  value: z.number(),
  n: z.number().int().nullable(),
  source: z.string().describe('Field of the file, or what it was recomputed from.'),
});

const resultMetricSchema = z.object({
  name: z.string(),
  unit: z.string(),
  definition: z
    .string()
    .nullable()
    .describe("Null for a tool's own metric that neither the file nor inferscope defines."),
  same_definition: z.boolean().describe('True when it can be compared with ours of the same name.'),
  file: z.array(resultStatisticSchema).describe('As in the file.'),
  recomputed: z
    .array(resultStatisticSchema)
    .describe("Computed by inferscope from the file's requests; empty where it has none."),
});

const resultPointSchema = z.object({
  label: z.string(),
  requests: z.object({ ok: z.number().int(), failed: z.number().int() }).nullable(),
  metrics: z.array(resultMetricSchema),
});

const benchmarkResultsSchema = z.object({
  session: z.object({
    id: z.string(),
    name: z.string().nullable(),
    title: z.string(),
    started_at: z.string(),
  }),
  captures: z.array(
    z.object({
      capture_id: z.string(),
      tool: z.object({ name: z.string(), version: z.string().nullable() }),
      points: z.array(resultPointSchema),
    }),
  ),
});

export const resultsVersion = '1.0';
export const resultsDocumentSchema = documentSchema('results', resultsVersion, benchmarkResultsSchema);

export type BenchmarkResults = z.infer<typeof benchmarkResultsSchema>;
export type BenchmarkPoint = z.infer<typeof resultPointSchema>;
export type BenchmarkMetric = z.infer<typeof resultMetricSchema>;
