import { boundOf } from '../../../llm/utilization.js';
import { totalWork } from '../../../llm/work-totals.js';
import { necessaryOps } from '../../../facts/model-work.js';
import { peaksOf } from '../../../facts/roofs.js';
import { capital } from '../../../vocabulary/sentence.js';
import { operatorStages } from '../operators/operator-stages.js';
import { productsSql } from '../operators/products.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { stageFacts, type StageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import { carried, stepSequence } from '../step-sequence.js';
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
    needs:
      "PyTorch's profiler with operator shapes in prefill and decode, or a GPU timeline with the model and the batch",
    gain: 'The time of the last product, and of the kernels after it, in proportion to the unneeded rows; low end 70 % of it.',
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
    const onGpu = await stageFacts(context);
    const stages = [...onGpu, ...(await operatorStages(context))];
    const prefill = stages.find(({ kind }) => kind === 'prefill');
    const withShapes = context.has('ops') && stages.some(({ kind }) => kind === 'decode');
    const byTime = onGpu.find(({ kind }) => kind === 'prefill');
    const result =
      prefill && withShapes
        ? await judge(context, prefill)
        : byTime
          ? await judgeByTime(context, byTime)
          : null;
    if (result === null)
      return {
        outcome: 'not_applicable',
        why: 'The session has no prefill on a GPU, nor a prefill and decode steps with the shapes of their products.',
      };
    return typeof result === 'string'
      ? { outcome: 'not_fired', why: result }
      : { outcome: 'fired', findings: [result] };
  },
};

/** Share of the roofline time of all rows from which a product may have computed them; measured peaks are not exact. */
const ofAllRows = 0.9;
/** Multiple of the roofline time of the needed rows: no product of so few rows is so slow where the others of the step are not. */
const slowerThanNeeded = 4;

/** By the time of the last product, where a timeline has no shapes: the logits of all rows take so long, those of the last row do not. */
async function judgeByTime(context: FindingContext, stage: StageFacts): Promise<FoundDraft | string> {
  const { model, roofs } = context;
  const shape = await stageShape(context, 'prefill');
  if (!('architecture' in model) || !roofs || !shape)
    return 'the model and the size of its prefill are not known';
  const rows = shape.batchSize * shape.newTokens;
  const head = necessaryOps(model, shape).find(({ name }) => name === 'lm_head');
  const sequence = await stepSequence(context, 'prefill');
  const at = sequence.findLastIndex(({ class: own }) => own === 'gemm');
  if (!head || at < 0 || shape.newTokens === 1)
    return 'the prefill has no product with the vocabulary, or one token';
  const seconds = (ofRows: number) => {
    const limit = boundOf(
      totalWork([head]),
      peaksOf((dtype) => roofs.roofFlops(dtype)),
      roofs.roofBandwidth.value,
    );
    return 'reason' in limit
      ? null
      : Math.max(limit.roofline_s, (limit.compute_s * ofRows) / shape.batchSize);
  };
  const [all, needed] = [seconds(rows), seconds(shape.batchSize)];
  if (all === null || needed === null) return 'the peaks of the device are not known';
  const factor = carried(sequence, stage.compute_ms);
  const product = (sequence[at]!.dur_ns * factor) / 1e6;
  const after = (sequence.slice(at + 1).reduce((sum, { dur_ns }) => sum + dur_ns, 0) * factor) / 1e6;
  const last = `the last product of a prefill takes ${ms(product)}; logits of ${plural(rows, 'token')} need ${ms(all * 1e3)}, of ${plural(shape.batchSize, 'token')} ${ms(needed * 1e3)}`;
  if (product < ofAllRows * all * 1e3 || product < slowerThanNeeded * needed * 1e3) return last;
  const gain = Math.max(0, product - needed * 1e3) + after * (1 - shape.batchSize / rows);
  if (gain < minShare * stage.wall_ms) return last;
  const { evidence } = await context.evidence<{ kernel: string }>(
    `SELECT coalesce(short_name, name) AS kernel, class, round(count(*) / ${stage.instances}, 2) AS per_instance, round(max(dur_ns) / 1e3, 2) AS longest_us
     FROM focus_kernels WHERE phase = 'prefill' AND class = 'gemm' GROUP BY ALL ORDER BY longest_us DESC`,
    () => last,
  );
  return draftOf(context, {
    wall: stage.wall_ms,
    logits: product + after,
    gain,
    rows,
    needed: shape.batchSize,
    cause: `${capital(last)}: logits are computed for every prompt token and discarded for all but the last.`,
    confidence: 'medium',
    evidence,
  });
}

interface Logits {
  wall: number;
  /** Ms of a prefill. */
  logits: number;
  gain: number;
  rows: number;
  needed: number;
  cause: string;
  confidence: 'high' | 'medium';
  evidence: FoundDraft['evidence'][number];
}

function draftOf(context: FindingContext, found: Logits): FoundDraft {
  const { wall, logits, gain, rows, needed } = found;
  return {
    stage: 'prefill',
    title: `Logits of the whole prompt: ${count(rows)} rows take ${part(logits, wall)} of every prefill; ${count(needed)} ${needed === 1 ? 'is' : 'are'} needed`,
    at_stake_ms: gain,
    cause: found.cause,
    change: {
      kind: 'code',
      text: "Take the last token's hidden state before the product with the vocabulary.",
      example: 'logits = lm_head(hidden[:, -1:])  # transformers: model(..., logits_to_keep=1)',
    },
    gain: {
      expected_ms: gain,
      low_ms: 0.7 * gain,
      high_ms: Math.max(gain, logits),
      after_ms: wall - gain,
      assumption:
        'The time of the product is proportional to its rows; no prompt token probabilities are needed.',
      what_if: null,
    },
    confidence: found.confidence,
    covers: ['casts_and_layout_copies', 'elementwise_norm_overhead'],
    bars: [
      ...barsOf(context, 'prefill', ['roofline', 'serial']),
      ...classBars(context, 'prefill', ['gemm', 'copy', 'elementwise']),
    ],
    evidence: [found.evidence],
    check: context.scope ? checkAgain : checkOnCpu,
  };
}

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
  return draftOf(context, {
    wall,
    logits: inPrefill.ms,
    gain,
    rows: inPrefill.rows,
    needed: inDecode.rows,
    cause: `The product with ${inPrefill.outer_size} output features, the vocabulary, has ${count(inPrefill.rows)} rows in a prefill and ${count(inDecode.rows)} in a decode step: logits are computed for every prompt token and discarded for all but the last. They also take ${count(inPrefill.rows)} × ${inPrefill.outer_size} values of memory.`,
    confidence: 'high',
    evidence,
  });
}
