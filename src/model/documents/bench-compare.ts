import { z } from 'zod';
import { documentSchema } from '../document.js';
import { baselineBases, baselineCheckSchema, baselineSessionSchema } from './baseline.js';

/** One side: sessions, or a saved baseline. */
const comparedSideSchema = z.object({
  selector: z.string().describe('As it was typed.'),
  baseline: z.string().nullable().describe('Name of the baseline; null for a session.'),
  variant: z.string().nullable().describe('Label of the variant that was chosen; null takes all.'),
  sessions: z.array(baselineSessionSchema),
});

/**
 * worse, better: a significant change. no_real_difference: not significant; the interval shows what is excluded. within_process, no_spread:
 * no verdict, because the spread between launches is unknown (or a value is 0). missing: only on one side.
 */
const compareVerdicts = [
  'worse',
  'better',
  'no_real_difference',
  'within_process',
  'no_spread',
  'missing',
] as const;

const share = z.number();

const comparedMetricSchema = z.object({
  id: z.string(),
  point: z.string().nullable(),
  name: z.string(),
  unit: z.string(),
  better: z.enum(['lower', 'higher']),
  base: z.number().nullable(),
  now: z.number().nullable(),
  change: share
    .nullable()
    .describe(
      "Effect: now / base − 1, by `method` as Hodges–Lehmann's estimate or of geometric means; without a test of the two figures.",
    ),
  change_ci95: z.tuple([share, share]).nullable().describe('95 %, not corrected for the number of metrics.'),
  superiority: share
    .nullable()
    .describe('Share of pairs of values in which the new one is larger, ties half.'),
  method: z
    .enum(['mann_whitney', 'welch'])
    .nullable()
    .describe(
      "Test that decided: Mann–Whitney if this many values can reach p = 0.05 after correction, else Welch's t-test on the logarithms; null without a verdict of a test.",
    ),
  p: z.number().nullable(),
  p_adjusted: z.number().nullable().describe("After Holm's correction within its family."),
  p_mann_whitney: z
    .number()
    .nullable()
    .describe('This and the next two: every test, for comparison with the one that decided.'),
  p_welch: z.number().nullable(),
  p_permutation: z.number().nullable(),
  family: z
    .enum(['gate', 'other'])
    .describe('Metrics corrected together: those that are gated, and the others.'),
  basis: z.enum(baselineBases),
  n: z.tuple([z.number().int(), z.number().int()]),
  verdict: z.enum(compareVerdicts),
  text: z.string(),
});

const compareGateSchema = z.object({
  metric: z.string(),
  /** Maximum relative change for the worse. */
  share,
  result: z
    .enum(['failed', 'passed', 'undecided'])
    .describe('undecided: inconclusive; no such change was shown, and none could be ruled out.'),
  by: z.array(z.string()).describe('Ids of the metrics that decided.'),
});

export const benchCompareSchema = z.object({
  base: comparedSideSchema,
  now: comparedSideSchema,
  within_process: z.boolean(),
  result: z.enum(['failed', 'passed', 'undecided', 'no_gate']).describe('failed only by a gate.'),
  headline: z.string(),
  power: z.array(z.string()).describe('Which differences this many values can and cannot show.'),
  gates: z.array(compareGateSchema),
  comparisons: z.array(comparedMetricSchema),
  differences: baselineCheckSchema.shape.differences,
});

export const benchCompareDocumentSchema = documentSchema('bench-compare', '1.0', benchCompareSchema);

export type ComparedSide = z.infer<typeof comparedSideSchema>;
export type ComparedMetric = z.infer<typeof comparedMetricSchema>;
export type CompareGate = z.infer<typeof compareGateSchema>;
export type CompareVerdict = (typeof compareVerdicts)[number];
export type BenchCompare = z.infer<typeof benchCompareSchema>;
