import { operatorStages } from '../operators/operator-stages.js';
import { productsSql } from '../operators/products.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { stageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, classBars, minShare } from '../stage-rule.js';
import { count, ms, part, plural } from '../words.js';
import { checkOnCpu } from '../operators/copied-context.js';

/** Ratio of output to input features from which a product computes logits: other layers widen 4x to 8x. */
const wide = 8;

/** A prefill computes logits of every prompt token; only the last one's are sampled. */
export const promptLogits: Rule = {
  id: 'prompt_logits',
  title: 'Logits of the whole prompt',
  docs: {
    finds: 'A prefill computes logits of every prompt token; only those of the last one are needed.',
    needs: "PyTorch's profiler with operator shapes in prefill and decode",
    gain: 'The time of the last product in proportion to the unneeded rows; low end 70 % of it.',
    change: "Take the last token's hidden state before the product with the vocabulary.",
    withheld: 'less than 5 % of the stage at stake',
  },
  references: [
    {
      title: 'Hugging Face transformers: logits_to_keep',
      url: 'https://huggingface.co/docs/transformers/main_classes/text_generation',
    },
  ],
  async find(context) {
    const stages = [...(await stageFacts(context)), ...(await operatorStages(context))];
    const prefill = stages.find(({ kind }) => kind === 'prefill');
    if (!prefill || !stages.some(({ kind }) => kind === 'decode') || !context.has('ops'))
      return {
        outcome: 'not_applicable',
        why: 'The session has no prefill and decode steps with the shapes of their products.',
      };
    const result = await judge(context, prefill);
    return typeof result === 'string'
      ? { outcome: 'not_fired', why: result }
      : { outcome: 'fired', findings: [result] };
  },
};

type Row = { kind: string; inner_size: number; outer_size: number; rows: number; ms: number };

/** The widest product that occurs in both prefill and decode. */
const logitsSql = (context: FindingContext, instances: number): string =>
  `WITH product AS (${productsSql(context)}),
   widest AS (SELECT inner_size, outer_size FROM product WHERE kind = 'decode' AND outer_size >= ${wide} * inner_size ORDER BY outer_size DESC LIMIT 1)
   SELECT kind, inner_size, outer_size, median(token_rows)::DOUBLE AS rows,
     round(sum(ns) / 1e6 / CASE kind WHEN 'prefill' THEN ${instances} ELSE count(DISTINCT step_id) END, 4) AS ms
   FROM product JOIN widest USING (inner_size, outer_size) WHERE kind IN ('prefill', 'decode') GROUP BY kind, inner_size, outer_size ORDER BY kind DESC`;

async function judge(
  context: FindingContext,
  { wall_ms: wall, instances }: { wall_ms: number; instances: number },
): Promise<FoundDraft | string> {
  const { rows, evidence } = await context.evidence<Row>(logitsSql(context, instances), (found) =>
    found
      .map(
        (row) =>
          `${row.kind}: ${plural(row.rows, 'row')} of ${row.inner_size} × ${row.outer_size}, ${ms(row.ms)}`,
      )
      .join('; '),
  );
  const inPrefill = rows.find(({ kind }) => kind === 'prefill');
  const inDecode = rows.find(({ kind }) => kind === 'decode');
  if (!inPrefill || !inDecode) return 'No logits product was recorded with its shape in both.';
  const gain = inPrefill.ms * Math.max(0, 1 - inDecode.rows / inPrefill.rows);
  if (gain < minShare * wall)
    return `The logits of ${plural(inPrefill.rows, 'token')} take ${part(inPrefill.ms, wall)} of a prefill.`;
  return {
    stage: 'prefill',
    title: `Logits of the whole prompt: ${count(inPrefill.rows)} rows take ${part(inPrefill.ms, wall)} of every prefill; ${count(inDecode.rows)} ${inDecode.rows === 1 ? 'is' : 'are'} needed`,
    at_stake_ms: gain,
    cause: `The product with ${inPrefill.outer_size} output features, the vocabulary, has ${count(inPrefill.rows)} rows in a prefill and ${count(inDecode.rows)} in a decode step: logits are computed for every prompt token and discarded for all but the last. They also take ${count(inPrefill.rows)} × ${inPrefill.outer_size} values of memory.`,
    change: {
      kind: 'code',
      text: "Take the last token's hidden state before the product with the vocabulary.",
      example: 'logits = lm_head(hidden[:, -1:])  # transformers: model(..., logits_to_keep=1)',
    },
    gain: {
      expected_ms: gain,
      low_ms: 0.7 * gain,
      high_ms: inPrefill.ms,
      after_ms: wall - gain,
      assumption:
        'The time of the product is proportional to its rows; no prompt token probabilities are needed.',
      what_if: null,
    },
    confidence: 'high',
    bars: [...barsOf(context, 'prefill', ['roofline', 'serial']), ...classBars(context, 'prefill', ['gemm'])],
    evidence: [evidence],
    check: context.scope ? checkAgain : checkOnCpu,
  };
}
