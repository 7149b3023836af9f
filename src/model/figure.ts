import { z } from 'zod';
import type { ReasonCode } from './reason-codes.js';
import { codeSchema } from './code-schema.js';

export const intervalOverSchema = z
  .object({ unit: z.enum(['launches', 'rounds', 'repeats']), n: z.number().int() })
  .describe(
    'What ci95 is over, if not the n values: means of process launches, of rounds against one process, or of repeats.',
  );

/**
 * A measured or derived number in a JSON document. Missing is null with a reason, never 0. `ci95` is the 95 % confidence interval [low,
 * high] of `value` over repeats, in the same unit.
 */
const measuredFigureSchema = z.object({
  value: z.number(),
  unit: z.string(),
  n: z.number().int().optional(),
  sd: z.number().optional(),
  ci95: z.tuple([z.number(), z.number()]).optional(),
  ci95_over: intervalOverSchema.optional(),
  median: z
    .number()
    .optional()
    .describe('Of the n values, where other programs may have disturbed some of them.'),
  p10: z.number().optional().describe('10th percentile of the n values, which other programs disturb least.'),
  source: z.string().describe('Where the number comes from: a table, a counter, a formula.'),
});

export const missingFigureSchema = z.object({
  value: z.null(),
  reason: z.object({ code: codeSchema<ReasonCode>(), text: z.string() }),
});

export const figureSchema = z.union([measuredFigureSchema, missingFigureSchema]);

export type MeasuredFigure = z.infer<typeof measuredFigureSchema>;
export type MissingFigure = z.infer<typeof missingFigureSchema>;
export type Figure = z.infer<typeof figureSchema>;

export function figure(
  value: number,
  unit: string,
  source: string,
  spread: Omit<MeasuredFigure, 'value' | 'unit' | 'source'> = {},
): MeasuredFigure {
  return { value, unit, source, ...spread };
}

export function missing(code: ReasonCode, text: string): MissingFigure {
  return { value: null, reason: { code, text } };
}

/** A monotone `f` of the value and its interval; a missing figure keeps its reason. */
export function mapFigure(from: Figure, unit: string, source: string, f: (value: number) => number): Figure {
  if (from.value === null) return from;
  const bounds = from.ci95?.map(f).sort((x, y) => x - y);
  const value = f(from.value);
  return figure(value, unit, source, {
    ...(from.n === undefined ? {} : { n: from.n }),
    // An interval across a pole of `f` (1 / x around 0) has no single interval as image.
    ...(bounds?.every(Number.isFinite) && bounds[0]! <= value && value <= bounds[1]!
      ? { ci95: [bounds[0]!, bounds[1]!], ...(from.ci95_over && { ci95_over: from.ci95_over }) }
      : {}),
  });
}

/** Whether a number is between 0 and 1: shares of bars from two passes with different times may not be. */
const isShare = (share: number): boolean => share >= 0 && share <= 1;

/** A bar's share of the measured time: 0 if it rounds to 0.0 %; null if it is not between 0 and 1. */
export function barShare(ms: number, measuredMs: number | null): number | null {
  if (!measuredMs) return null;
  if (Math.abs(ms) < 5e-4 * measuredMs) return 0;
  return isShare(ms / measuredMs) ? ms / measuredMs : null;
}
