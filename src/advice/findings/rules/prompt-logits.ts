import { gainOf } from '../gain.js';
import { capitalize } from '../../../vocabulary/sentence.js';
import { gainOfGemms, logitsGemms, logitsLimit, longestGemmsSql } from '../logits-gemm.js';
import { operatorStages } from '../operators/operator-stages.js';
import { weightGemmsSql } from '../operators/weight-gemms.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { stageFacts, type StageFacts } from '../stage-facts.js';
import { stageShape } from '../stage-shape.js';
import { barsOf, checkAgain, classBars, minShare } from '../stage-rule.js';
import { count, everyInstance, ms, part, plural } from '../words.js';
import { checkOnCpu } from '../operators/copied-context.js';

/** Minimum ratio of output to input features for a GEMM to compute logits: other layers widen 4x to 8x. */
const minWidening = 8;

/** A prefill computes logits of every prompt token; only the last one's are sampled. */
export const promptLogits: Rule = {
  id: 'prompt_logits',
  title: 'Logits of the whole prompt',
  docs: {
    finds: 'A prefill computes logits of every prompt token; only those of the last one are needed.',
    needs:
      "PyTorch's profiler with operator shapes in prefill and decode, or a GPU timeline with the model and the batch",
    gain: 'The time of the last GEMM, and of the kernels after it, in proportion to the unneeded rows; low end 70 % of it.',
    change: "Take the last token's hidden state before the LM head.",
    withheld: 'less than 5 % of the stage is affected',
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
    const inSampling = byTime ? await judgeSampling(context, byTime) : null;
    const result =
      inSampling ??
      (prefill && withShapes
        ? await judge(context, prefill)
        : byTime
          ? await judgeByTime(context, byTime)
          : null);
    if (result === null)
      return {
        outcome: 'not_applicable',
        why: 'The session has no prefill on a GPU, nor a prefill and decode steps with the shapes of their GEMMs.',
      };
    return typeof result === 'string'
      ? { outcome: 'not_fired', why: `prefill: ${result}.` }
      : { outcome: 'fired', findings: [result] };
  },
};

/**
 * Minimum share of the roofline time of all rows for a GEMM to have computed them: peaks are measured under a power limit
 * (1.36 of 1.98 GHz on an H200), and a single GEMM runs at the full clock.
 */
const minAllRowsShare = 0.65;
/** Maximum multiple of that time: a slower GEMM did something else. */
const maxAllRowsFactor = 2;
/**
 * Minimum multiple of the roofline time of the needed rows: no GEMM of so few rows is this slow if the step's others
 * are not.
 */
const minNeededRowsFactor = 4;

/**
 * Judges by the time of the last GEMM if a timeline has no shapes: it is as long as the logits of all rows need, and
 * longer than those of the last row need.
 */
async function judgeByTime(context: FindingContext, stage: StageFacts): Promise<FoundDraft | string> {
  const gemms = await logitsGemms(context, stage);
  if (typeof gemms === 'string') return gemms;
  const prompts = gemms.filter(({ shape }) => shape.newTokens > 1);
  if (prompts.length === 0) return 'the prefill has one token';
  const found = gainOfGemms(prompts, ({ shape, ms: gemmMs, after_ms, limitMs }) => {
    const rows = shape.batchSize * shape.newTokens;
    const [all, needed] = [limitMs(rows), limitMs(shape.batchSize)];
    return gemmMs < minAllRowsShare * all ||
      gemmMs > maxAllRowsFactor * all ||
      gemmMs < minNeededRowsFactor * needed
      ? null
      : Math.max(0, gemmMs - needed) + after_ms * (1 - shape.batchSize / rows);
  });
  const { shape, ms: gemmMs, limitMs } = found?.largest ?? prompts[0]!;
  const rows = shape.batchSize * shape.newTokens;
  const last = `the last GEMM of a prefill takes ${ms(gemmMs)}; its roofline is ${ms(limitMs(rows))} for logits of ${plural(rows, 'token')}, ${ms(limitMs(shape.batchSize))} for ${plural(shape.batchSize, 'token')}`;
  if (!found || found.gain < minShare * stage.wall_ms) return last;
  const { evidence } = await context.evidence<{ kernel: string }>(longestGemmsSql(stage), () => last);
  return draftOf(context, {
    stage: 'prefill',
    wall: stage.wall_ms,
    logits: found.gemm_ms + found.after_ms,
    gain: found.gain,
    rows,
    needed: shape.batchSize,
    cause: `${capitalize(last)}: logits are computed for every prompt token and discarded for all but the last.`,
    confidence: 'medium',
    evidence,
  });
}

type Sampling = { gemms_ms: number; busy_ms: number; wall_ms: number };

/**
 * Some engines compute logits in the sampling stage instead of the prefill: all GEMMs there are logits, in one piece
 * or in several.
 * @returns null if no sampling computes logits of whole prompts
 */
async function judgeSampling(context: FindingContext, prefill: StageFacts): Promise<FoundDraft | null> {
  const limit = logitsLimit(context, await stageShape(context, prefill.kind));
  if (typeof limit === 'string') return null;
  const { shape, limitMs } = limit;
  const rows = shape.batchSize * shape.newTokens;
  const [all, needed] = [limitMs(rows), limitMs(shape.batchSize)];
  if (all < minNeededRowsFactor * needed) return null;
  const { rows: samplings, evidence } = await context.evidence<Sampling>(
    `SELECT round(coalesce(sum(dur_ns) FILTER (class = 'gemm'), 0) / 1e6, 4) AS gemms_ms, round(sum(dur_ns) / 1e6, 4) AS busy_ms,
            round(any_value(device_end_ns - device_start_ns) / 1e6, 4) AS wall_ms
     FROM rank_kernels k JOIN stages_in_phases p ON p.stage_id = k.stage_id JOIN instances i ON i.stage_id = p.step_id
     WHERE p.kind = 'sampling' GROUP BY p.step_id ORDER BY gemms_ms DESC`,
    ([longest]) =>
      `GEMMs of the longest sampling: ${ms(longest?.gemms_ms ?? 0)}; logits of ${plural(rows, 'token')} need ${ms(all)}, of ${plural(shape.batchSize, 'token')} ${ms(needed)}`,
  );
  const allTokens = samplings.filter(
    ({ gemms_ms: gemmsMs }) => gemmsMs >= minAllRowsShare * all && gemmsMs <= maxAllRowsFactor * all,
  );
  const neededMs = (gemmsMs: number): number => Math.max(needed, (gemmsMs * shape.batchSize) / rows);
  const mean = (group: readonly Sampling[], value: (row: Sampling) => number): number =>
    group.reduce((sum, row) => sum + value(row), 0) / samplings.length;
  const gain = mean(allTokens, ({ busy_ms: busy }) => Math.max(0, busy - neededMs(busy)));
  const wall = mean(samplings, (row) => row.wall_ms);
  if (allTokens.length === 0 || gain < minShare * wall) return null;
  return draftOf(context, {
    stage: 'sampling',
    wall,
    logits: mean(allTokens, ({ busy_ms: busy }) => busy),
    gain,
    run_ms: gain * samplings.length,
    rows,
    needed: shape.batchSize,
    cause: `Sampling after a prefill computes GEMMs for ${ms(allTokens[0]!.gemms_ms)}; logits of ${plural(rows, 'token')} need ${ms(all)}, of ${plural(shape.batchSize, 'token')} ${ms(needed)}: logits are computed for every prompt token, and its probabilities from them.`,
    confidence: 'medium',
    evidence,
  });
}

interface LogitsFinding {
  stage: 'prefill' | 'sampling';
  wall: number;
  /** Ms per prefill. */
  logits: number;
  gain: number;
  /** Over the whole run; omitted for a stage with a waterfall. */
  run_ms?: number;
  rows: number;
  needed: number;
  cause: string;
  confidence: 'high' | 'medium';
  evidence: FoundDraft['evidence'][number];
}

function draftOf(context: FindingContext, logitsFinding: LogitsFinding): FoundDraft {
  const { stage, wall, logits, gain, rows, needed } = logitsFinding;
  const engine = stage === 'sampling';
  return {
    stage,
    title: (share) =>
      `Logits of the whole prompt: ${count(rows)} rows cost ${share} of ${everyInstance(stage)}; ${count(needed)} ${needed === 1 ? 'is' : 'are'} needed`,
    at_stake_ms: gain,
    share: gain / wall,
    ...(logitsFinding.run_ms === undefined ? {} : { run_ms: logitsFinding.run_ms }),
    cause: logitsFinding.cause,
    change: engine
      ? {
          kind: 'code',
          text: 'Do not ask for probabilities of prompt tokens unless they are used.',
          example: 'SamplingParams(prompt_logprobs=None)',
        }
      : {
          kind: 'code',
          text: "Take the last token's hidden state before the LM head.",
          example: 'logits = lm_head(hidden[:, -1:])  # transformers: model(..., logits_to_keep=1)',
        },
    gain: gainOf(
      wall,
      gain,
      'The time of the GEMM is proportional to its rows; no prompt token probabilities are needed.',
      { high_ms: Math.max(gain, logits) },
    ),
    confidence: logitsFinding.confidence,
    covers: ['casts_and_layout_copies', 'elementwise_norm_overhead'],
    bars: [
      ...barsOf(context, stage, ['roofline', 'serial']),
      ...classBars(context, stage, ['gemm', 'copy', 'elementwise', 'sampling']),
    ],
    evidence: [logitsFinding.evidence],
    check: context.scope ? checkAgain : checkOnCpu,
  };
}

type Row = { kind: string; inner_size: number; outer_size: number; rows: number; ms: number };

/** The widest GEMM that occurs in both prefill and decode. */
const logitsSql = (context: FindingContext, instances: number): string =>
  `WITH gemm AS (${weightGemmsSql(context)}),
   widest AS (SELECT inner_size, outer_size FROM gemm WHERE kind = 'decode' AND outer_size >= ${minWidening} * inner_size ORDER BY outer_size DESC LIMIT 1)
   SELECT kind, inner_size, outer_size, median(token_rows)::DOUBLE AS rows,
     round(sum(ns) / 1e6 / CASE kind WHEN 'prefill' THEN ${instances} ELSE count(DISTINCT step_id) END, 4) AS ms
   FROM gemm JOIN widest USING (inner_size, outer_size) WHERE kind IN ('prefill', 'decode') GROUP BY kind, inner_size, outer_size ORDER BY kind DESC`;

async function judge(
  context: FindingContext,
  { wall_ms: wall, instances }: { wall_ms: number; instances: number },
): Promise<FoundDraft | string> {
  const { rows, evidence } = await context.evidence<Row>(logitsSql(context, instances), (evidenceRows) =>
    evidenceRows
      .map(
        (row) =>
          `${row.kind}: ${plural(row.rows, 'row')} of ${row.inner_size} × ${row.outer_size}, ${ms(row.ms)}`,
      )
      .join('; '),
  );
  const inPrefill = rows.find(({ kind }) => kind === 'prefill');
  const inDecode = rows.find(({ kind }) => kind === 'decode');
  if (!inPrefill || !inDecode) return 'no logits GEMM was recorded with its shape in prefill and decode';
  const gain = inPrefill.ms * Math.max(0, 1 - inDecode.rows / inPrefill.rows);
  if (gain < minShare * wall)
    return `the logits of ${plural(inPrefill.rows, 'token')} take ${part(inPrefill.ms, wall)}`;
  return draftOf(context, {
    stage: 'prefill',
    wall,
    logits: inPrefill.ms,
    gain,
    rows: inPrefill.rows,
    needed: inDecode.rows,
    cause: `The LM head (${inPrefill.outer_size} output features) has ${count(inPrefill.rows)} rows in a prefill and ${count(inDecode.rows)} in a decode step: logits are computed for every prompt token and discarded for all but the last. They also take ${count(inPrefill.rows)} × ${inPrefill.outer_size} values of memory.`,
    confidence: 'high',
    evidence,
  });
}
