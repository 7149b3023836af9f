import { z } from 'zod';
import { documentSchema } from '../document.js';
import { estimatedComponents } from '../memory-components.js';

/** Dimensions by which errors of the total are grouped. */
export const errorDimensions = ['family', 'dtype', 'tensor_parallel_size', 'engine', 'quantization'] as const;

export const validateVersion = '1.5';

const comparedSchema = z.object({
  measured_bytes: z.number(),
  estimated_bytes: z.number(),
  error_bytes: z.number().describe('estimated − measured.'),
  error_share: z.number().nullable().describe('Share of measured; null where nothing was measured.'),
  within_tolerance: z.boolean(),
});

const validatedProfileSchema = z.object({
  source: z.string().describe('File or session.'),
  model: z.string(),
  family: z.string().nullable(),
  engine: z.string(),
  engine_version: z.string().nullable(),
  dtype: z.string().nullable(),
  quantization: z.string().nullable(),
  tensor_parallel_size: z.number().int(),
  batch_size: z.number().int().nullable().describe('Null where the profile does not state it (1.4).'),
  input_len: z.number().int().nullable(),
  output_len: z.number().int().nullable(),
  gpu: z.string().nullable(),
  fitted: z
    .boolean()
    .default(false)
    .describe('Constants of the estimate were fitted to this run: its error is not that of a new one (1.5).'),
  status: z
    .enum(['compared', 'rejected', 'skipped'])
    .describe('rejected: the measurement is implausible. skipped: the estimate cannot be compared with it.'),
  reasons: z.array(z.string()).describe('Why it was rejected or skipped, or what is doubtful about it.'),
  total: comparedSchema.nullable().describe('Null unless compared.'),
  components: z.array(
    comparedSchema.extend({
      component: z.enum(estimatedComponents),
      formula: z.string(),
      estimate_confidence: z.enum(['high', 'medium', 'low']),
    }),
  ),
  not_measured: z
    .array(z.enum(estimatedComponents))
    .describe('Components without a measurement to compare with: the profile has them by a formula (1.1).'),
  uncovered: comparedSchema
    .nullable()
    .default(null)
    .describe(
      'The totals without the compared components: what nothing measured by itself; null where that is all (1.2).',
    ),
  residual_bytes: z.number().nullable().describe('Measured and in no component.'),
  explanation: z.string().nullable().describe('Main cause of the error, in words.'),
});

/** Errors of a component or the total over profiles. Shares are relative to the measured bytes. */
const errorSummarySchema = z.object({
  profiles: z.number().int(),
  mean_share: z.number().nullable().describe('Signed: above 0 the estimates are too high.'),
  mean_absolute_share: z.number().nullable(),
  worst_share: z.number().nullable(),
  mean_absolute_bytes: z.number(),
  within_tolerance: z.number().int(),
});

const recommendationSchema = z.object({
  constant: z.string().describe('As memory-constants.ts names it.'),
  current: z.number(),
  current_source: z
    .string()
    .describe('What the current value rests on, and how many runs it was fitted to (1.3).'),
  fitted: z.number(),
  unit: z.enum(['bytes', 'share', 'factor']),
  profiles: z.number().int(),
  models: z.number().int().describe('Different models among them (1.1).'),
  spread: z
    .tuple([z.number(), z.number()])
    .describe('Smallest and largest value that would have been right (1.1).'),
  error_before_bytes: z
    .number()
    .describe(
      'Mean absolute error of the sizes that depend on it, with the current and with the fitted value.',
    ),
  error_after_bytes: z.number(),
  text: z.string(),
});

export const validationSchema = z.object({
  session: z.object({ id: z.string(), started_at: z.string() }).nullable(),
  tolerance: z.number().describe('Allowed error of the total, as a share.'),
  component_tolerance: z
    .object({ share: z.number(), bytes: z.number() })
    .describe('Allowed error of a component: this share or this many bytes, whichever is larger.'),
  result: z.enum(['passed', 'failed', 'nothing_compared']),
  counts: z.object({
    compared: z.number().int(),
    rejected: z.number().int(),
    skipped: z.number().int(),
    within_tolerance: z.number().int(),
  }),
  total: errorSummarySchema,
  total_by_fit: z
    .object({ fitted: errorSummarySchema, others: errorSummarySchema })
    .nullable()
    .default(null)
    .describe(
      '`total` split into runs that constants were fitted to and the others; null where none was (1.5).',
    ),
  components: z.array(errorSummarySchema.extend({ component: z.enum(estimatedComponents) })),
  uncovered: errorSummarySchema
    .nullable()
    .default(null)
    .describe('Memory that no component of a profile covers; null if there is none (1.2).'),
  groups: z
    .array(
      errorSummarySchema.extend({
        dimension: z.enum(errorDimensions),
        value: z.string(),
      }),
    )
    .describe('Errors of the total by what the profiles differ in.'),
  profiles: z.array(validatedProfileSchema),
  recommendations: z.array(recommendationSchema),
});

export const validationDocumentSchema = documentSchema('validate', validateVersion, validationSchema);

/** `validate --history`: one row per session, oldest first. */
export const validationHistoryVersion = '1.2';
const validationHistorySchema = z.object({
  sessions: z.array(
    z.object({
      id: z.string(),
      started_at: z.string(),
      tool_version: z.string(),
      result: validationSchema.shape.result,
      tolerance: validationSchema.shape.tolerance,
      counts: validationSchema.shape.counts,
      total: errorSummarySchema,
      components: z.array(errorSummarySchema.extend({ component: z.enum(estimatedComponents) })),
    }),
  ),
  trend: z
    .object({
      before: z.string().describe('Id of a session.'),
      now: z.string().describe('Id of the last session that compared totals.'),
      profiles: z.number().int().describe('Profiles that both compared.'),
      mean_absolute_share_before: z.number(),
      mean_absolute_share_now: z.number(),
    })
    .nullable()
    .default(null)
    .describe(
      'Errors of the total over the same profiles, in the last session and in the one before that has some of them; null if none has (1.1).',
    ),
});
export const validationHistoryDocumentSchema = documentSchema(
  'validate-history',
  validationHistoryVersion,
  validationHistorySchema,
);

export type Validation = z.infer<typeof validationSchema>;
export type ValidatedProfile = z.infer<typeof validatedProfileSchema>;
export type ErrorSummary = z.infer<typeof errorSummarySchema>;
export type Recommendation = z.infer<typeof recommendationSchema>;
export type ValidationHistory = z.infer<typeof validationHistorySchema>;
