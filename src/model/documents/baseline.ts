import { z } from 'zod';
import { documentSchema } from '../document.js';

export const baselineBases = ['launches', 'repeats', 'interval', 'none'] as const;

/** One metric of one side of a comparison, with its spread. */
const sampledMetricSchema = z.object({
  id: z
    .string()
    .describe('"ttft_ms", "concurrency 8 · ttft": what must be equal for two metrics to be compared.'),
  point: z.string().nullable().describe('Load point or sizes; null where the sessions have one.'),
  name: z.string(),
  unit: z.string(),
  better: z.enum(['lower', 'higher']),
  value: z.number().describe('Mean of `values`, or the figure where there are none.'),
  basis: z
    .enum(baselineBases)
    .describe(
      'launches: `values` are means of process launches, or of separate runs. repeats: of repeats in one process, which share its memory layout and the time of measurement. interval: only a confidence interval is known. none: one number.',
    ),
  values: z.array(z.number()),
  interval: z
    .object({
      n: z.number().int(),
      ci95: z.tuple([z.number(), z.number()]),
      /** True when the interval is over process launches. */
      over_launches: z.boolean(),
    })
    .nullable(),
  source: z.string(),
});

export const baselineSessionSchema = z.object({
  id: z.string(),
  name: z.string().nullable(),
  title: z.string(),
  kind: z.string(),
  started_at: z.string(),
});

/** A fact about how a session was made: a difference in one may explain a difference in time. */
const identityFactSchema = z.object({ label: z.string(), part: z.string(), value: z.string() });

/** A stored baseline contains its figures: it outlives its sessions and can be committed to git. */
const baselineSchema = z.object({
  name: z.string(),
  set_at: z.string(),
  sessions: z.array(baselineSessionSchema),
  identity: z.array(identityFactSchema),
  metrics: z.array(sampledMetricSchema),
});

/**
 * regression, improvement, within_tolerance: a significant change. unchanged: no change beyond the tolerance in either direction; no_worse:
 * none for the worse. inconclusive: a change for the worse beyond it is possible. within_process, no_spread: no verdict, because the spread
 * between launches is unknown (or a value is 0).
 */
const baselineVerdicts = [
  'regression',
  'improvement',
  'within_tolerance',
  'unchanged',
  'no_worse',
  'inconclusive',
  'within_process',
  'no_spread',
  'missing',
] as const;

const share = z.number();

const baselineComparisonSchema = z.object({
  id: z.string(),
  point: z.string().nullable(),
  name: z.string(),
  unit: z.string(),
  better: z.enum(['lower', 'higher']),
  baseline: z.number().nullable(),
  current: z.number().nullable(),
  change: share
    .nullable()
    .describe('current / baseline − 1, of geometric means where `values` are compared.'),
  change_ci95: z
    .tuple([share, share])
    .nullable()
    .describe('95 % confidence interval of `change`, not corrected for the number of metrics.'),
  p: z.number().nullable().describe("Welch's t-test on the logarithms."),
  p_adjusted: z
    .number()
    .nullable()
    .describe("After Holm's correction over the metrics that were tested; the verdict uses it."),
  p_permutation: z
    .number()
    .nullable()
    .describe('Exact or sampled permutation test; null where so few values cannot reach 0.05.'),
  degrees_of_freedom: z.number().nullable(),
  basis: z.enum(baselineBases).describe('The weaker of the two sides.'),
  n: z.tuple([z.number().int(), z.number().int()]).describe('Number of values of each side.'),
  verdict: z.enum(baselineVerdicts),
  text: z.string(),
});

export const baselineCheckSchema = z.object({
  baseline: baselineSchema.pick({ name: true, set_at: true, sessions: true }),
  sessions: z.array(baselineSessionSchema),
  tolerance: share.describe('Changes for the worse up to this share pass.'),
  within_process: z
    .boolean()
    .describe('True when repeats of one process were taken as independent (--within-process).'),
  result: z
    .enum(['regression', 'passed', 'undecided'])
    .describe('undecided: inconclusive; no regression was shown, but none could be ruled out either.'),
  headline: z.string(),
  comparisons: z.array(baselineComparisonSchema),
  differences: z.array(
    z.object({
      label: z.string(),
      part: z.string(),
      baseline: z.string().nullable(),
      current: z.string().nullable(),
    }),
  ),
});

export const baselineVersion = '1.0';
export const baselineDocumentSchema = documentSchema('baseline', baselineVersion, baselineSchema);
export const baselineCheckDocumentSchema = documentSchema(
  'baseline-check',
  baselineVersion,
  baselineCheckSchema,
);

export type SampledMetric = z.infer<typeof sampledMetricSchema>;
export type Baseline = z.infer<typeof baselineSchema>;
export type BaselineCheck = z.infer<typeof baselineCheckSchema>;
export type BaselineComparison = z.infer<typeof baselineComparisonSchema>;
export type BaselineVerdict = (typeof baselineVerdicts)[number];
