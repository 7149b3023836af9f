import { z } from 'zod';
import { documentSchema } from '../document.js';
import { figureSchema } from '../figure.js';

/** One tool call of the model, cited as [q1] in an answer. */
export const answerQuerySchema = z.object({
  id: z
    .string()
    .describe('q1, q2, … in the order of the calls; q0 is what the model was given with the question.'),
  tool: z
    .string()
    .describe('sql, findings, waterfall, schema, hardware, model_arithmetic, program_output, comparison.'),
  input: z.string().nullable().describe('The SQL, the stage, …; null where the tool takes nothing.'),
  rows: z.number().int().nullable().describe('Rows or entries that came back; null where the call failed.'),
  error: z.string().nullable(),
});

/** A number in the answer, and whether a query returned it. */
const claimSchema = z.object({
  text: z.string().describe('As it is in the answer, with its unit.'),
  verified: z.boolean(),
  queries: z
    .array(z.string())
    .describe('The query that returned it, or the two queries that it is computed from.'),
  derivation: z
    .enum(['returned', 'question', 'ratio', 'difference', 'sum'])
    .nullable()
    .describe(
      'How it follows: returned by a query, stated in the question, or ratio, difference or sum of two numbers; null when it does not.',
    ),
});

export const analyzeResultSchema = z.object({
  session: z.object({ id: z.string(), name: z.string().nullable(), title: z.string() }),
  question: z.string().nullable(),
  answered_by: z
    .enum(['model', 'stored', 'none'])
    .describe(
      'model: a language model answered, and its numbers were checked. stored: analyses and findings answered. none: the session has no answer.',
    ),
  model: z.string().nullable(),
  answer: z.string().describe('Unverified numbers are marked in it.'),
  claims: z.array(claimSchema),
  unverified: z.number().int(),
  queries: z.array(answerQuerySchema),
  next_capture: z
    .string()
    .nullable()
    .describe(
      'One command line of inferscope, never run: with `--deeper` the capture that the model proposes; without a model the capture that would answer it.',
    ),
  usage: z
    .object({
      steps: z.number().int(),
      input_tokens: z.number().int().nullable(),
      output_tokens: z.number().int().nullable(),
      cost_usd: figureSchema,
    })
    .nullable(),
});

/** `analyze --dry-run --json`: the first request as it would be sent, without its key. */
const analyzeRequestSchema = z.object({
  url: z.string(),
  model: z.string(),
  body: z
    .record(z.string(), z.unknown())
    .describe("The body: system prompt, tools and messages in the provider's own form."),
});

export const analyzeVersion = '1.0';
export const analyzeDocumentSchema = documentSchema('analyze', analyzeVersion, analyzeResultSchema);

export const analyzeRequestDocumentSchema = documentSchema(
  'analyze-request',
  analyzeVersion,
  analyzeRequestSchema,
);

export type AnswerQuery = z.infer<typeof answerQuerySchema>;
export type Claim = z.infer<typeof claimSchema>;
export type AnalyzeResult = z.infer<typeof analyzeResultSchema>;
