import { z } from 'zod';
import { documentSchema } from '../document.js';
import { estimatedComponents } from '../memory-components.js';

export const validateVersion = '1.3';

const comparedSchema = z.object({
  measured_bytes: z.number(),
  estimated_bytes: z.number(),
  /** estimated − measured. */
  error_bytes: z.number(),
  /** Of the measured; null where nothing was measured. */
  error_share: z.number().nullable(),
  within: z.boolean(),
});

export const validatedProfileSchema = z.object({
  /** File or session. */
  source: z.string(),
  model: z.string(),
  family: z.string().nullable(),
  engine: z.string(),
  engine_version: z.string().nullable(),
  dtype: z.string().nullable(),
  quantization: z.string().nullable(),
  tensor_parallel_size: z.number().int(),
  batch_size: z.number().int(),
  input_len: z.number().int(),
  output_len: z.number().int(),
  gpu: z.string().nullable(),
  /** rejected: the measurement is implausible. skipped: the calculator cannot be held against it. */
  status: z.enum(['compared', 'rejected', 'skipped']),
  /** Why it was rejected or skipped, or what is doubtful about it. */
  reasons: z.array(z.string()),
  /** Null unless compared. */
  total: comparedSchema.nullable(),
  components: z.array(
    comparedSchema.extend({
      component: z.enum(estimatedComponents),
      formula: z.string(),
      estimate_confidence: z.enum(['high', 'medium', 'low']),
    }),
  ),
  /** Components that nothing measured, so that there is nothing to compare: a formula gave them (1.1). */
  not_measured: z.array(z.enum(estimatedComponents)),
  /** The totals without the compared components: what nothing measured by itself; null where that is all (1.2). */
  rest: comparedSchema.nullable().default(null),
  /** Measured and in no component. */
  residual_bytes: z.number().nullable(),
  /** What makes most of the error, in words. */
  explanation: z.string().nullable(),
});

/** Errors of a component, or of the total, over profiles. Shares are of the measured bytes. */
export const errorSummarySchema = z.object({
  profiles: z.number().int(),
  /** Signed: above 0 the calculator says too much. */
  mean_share: z.number().nullable(),
  mean_absolute_share: z.number().nullable(),
  worst_share: z.number().nullable(),
  mean_absolute_bytes: z.number(),
  within: z.number().int(),
});

export const recommendationSchema = z.object({
  /** As memory-constants.ts names it. */
  constant: z.string(),
  current: z.number(),
  /** What the current value rests on, and how many runs it was fitted to (1.3). */
  current_source: z.string(),
  fitted: z.number(),
  unit: z.enum(['bytes', 'share', 'factor']),
  profiles: z.number().int(),
  /** Different models among them (1.1). */
  models: z.number().int(),
  /** Smallest and largest value that would have been right (1.1). */
  spread: z.tuple([z.number(), z.number()]),
  /** Mean absolute error of what it decides, before and with the fitted value. */
  error_before_bytes: z.number(),
  error_after_bytes: z.number(),
  text: z.string(),
});

export const validationSchema = z.object({
  session: z.object({ id: z.string(), started_at: z.string() }).nullable(),
  /** Of the total. */
  tolerance: z.number(),
  /** Of a component: this share or this many bytes, whichever is larger. */
  component_tolerance: z.object({ share: z.number(), bytes: z.number() }),
  result: z.enum(['passed', 'failed', 'nothing_compared']),
  counts: z.object({
    compared: z.number().int(),
    rejected: z.number().int(),
    skipped: z.number().int(),
    within: z.number().int(),
  }),
  total: errorSummarySchema,
  components: z.array(errorSummarySchema.extend({ component: z.enum(estimatedComponents) })),
  /** Of what no component of a profile was measured for; null where there is none of it (1.2). */
  rest: errorSummarySchema.nullable().default(null),
  /** Errors of the total by what the profiles differ in. */
  groups: z.array(
    errorSummarySchema.extend({
      by: z.enum(['family', 'dtype', 'tensor_parallel_size', 'engine', 'quantization']),
      value: z.string(),
    }),
  ),
  profiles: z.array(validatedProfileSchema),
  recommendations: z.array(recommendationSchema),
});

export const validationDocumentSchema = documentSchema('validate', validateVersion, validationSchema);

/** `validate --history`: one row a session, oldest first. */
export const validationHistorySchema = z.object({
  sessions: z.array(
    z.object({
      id: z.string(),
      started_at: z.string(),
      tool_version: z.string(),
      result: validationSchema.shape.result,
      counts: validationSchema.shape.counts,
      total: errorSummarySchema,
      components: z.array(errorSummarySchema.extend({ component: z.enum(estimatedComponents) })),
    }),
  ),
});
export const validationHistoryDocumentSchema = documentSchema(
  'validate-history',
  '1.0',
  validationHistorySchema,
);

export type Validation = z.infer<typeof validationSchema>;
export type ValidatedProfile = z.infer<typeof validatedProfileSchema>;
export type ErrorSummary = z.infer<typeof errorSummarySchema>;
export type Recommendation = z.infer<typeof recommendationSchema>;
export type ValidationHistory = z.infer<typeof validationHistorySchema>;

/** 1.1: `not_measured`. */
