import { z } from 'zod';
import { figureSchema } from '../figure.js';
import { phaseKindSchema } from './trace-phase.js';

const count = z.number().int();

/** Whether the steps of a kind became slower or faster over the run, compared with steps of the same work. */
export const driftSchema = z.object({
  kind: phaseKindSchema,
  steps: count.describe('Steps for which there is another step of the same work.'),
  matched_by: z
    .enum(['position', 'batch', 'kind'])
    .describe(
      'Which steps are compared with each other. position: of equal position in their request and equal batch size. batch: of equal batch size. kind: all.',
    ),
  span_ns: z.number().describe('From the first of them to the last.'),
  change: figureSchema.describe(
    'Change from the start of the span to its end, of the time of a step: Theil-Sen slope of logarithms, 95 % by Sen (1968).',
  ),
  parts: z
    .array(z.object({ from_ns: z.number(), steps: count, relative: z.number().nullable() }))
    .describe(
      'The span in ten parts of equal length: median of time / median of the steps alike; null where no step started.',
    ),
});

export type Drift = z.infer<typeof driftSchema>;
