import { gainOf } from '../gain.js';
import { operatorStages } from '../operators/operator-stages.js';
import { weightGemmsSql } from '../operators/weight-gemms.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { stageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, classBars, minShare } from '../stage-rule.js';
import { instanceWord, count, everyInstance, ms, plural } from '../words.js';
import { checkOnCpu } from '../operators/copied-context.js';

/** Tokens per sequence above which a step is not speculation or a chunk. */
const minTokens = 8;
const minSteps = 4;
/** Share of step pairs with the same growth in rows. */
const minPairShare = 0.75;
/** Rows that one core computes in the time to read the weights (float32, DRAM against FMA). */
const freeRowsOnCpu = 16;

/** Every step recomputes all tokens: the rows of its GEMMs grow by the new tokens from step to step. */
export const noKvCache: Rule = {
  id: 'no_kv_cache',
  title: 'No KV cache',
  docs: {
    finds: 'Every step recomputes all earlier tokens: the rows of its GEMMs or norms grow from step to step.',
    needs:
      "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators with shapes of a program without a GPU",
    gain: 'Kernel time in proportion to the rows, down to the time to read the weights; low end half of it.',
    change: 'Keep keys and values of earlier tokens (`use_cache=True`).',
    withheld:
      'fewer than 4 steps, rows that do not grow evenly, or a CUDA graph, which has the same rows in every step',
  },
  references: [
    {
      title: 'Hugging Face transformers: caching',
      url: 'https://huggingface.co/docs/transformers/cache_explanation',
    },
  ],
  async find(context) {
    const onGpu = await stageFacts(context);
    const stages = [
      ...onGpu.map(({ kind, wall_ms, compute_ms }) => ({ kind, wall_ms, work_ms: compute_ms })),
      ...(await operatorStages(context)).map(({ kind, wall_ms, operators_ms }) => ({
        kind,
        wall_ms,
        work_ms: operators_ms,
      })),
    ].filter(({ kind }) => kind === 'decode' || kind === 'mixed');
    if (stages.length === 0)
      return {
        outcome: 'not_applicable',
        why: 'The session has no decode steps of a GPU timeline, nor operators of a program without a GPU.',
      };
    const findings: FoundDraft[] = [];
    const reasons: string[] = [];
    for (const stage of stages) {
      const result = await judge(context, stage);
      if (typeof result === 'string') reasons.push(`${stage.kind}: ${result}`);
      else findings.push(result);
    }
    return findings.length > 0
      ? { outcome: 'fired', findings }
      : { outcome: 'not_fired', why: `${reasons.join('; ')}.` };
  },
};

interface Stage {
  kind: 'decode' | 'mixed' | string;
  wall_ms: number;
  work_ms: number;
}

type Row = {
  steps: number;
  first_rows: number;
  last_rows: number;
  mean_rows: number;
  grows_by: number | null;
  of_pairs: number | null;
};

const stageRows = (kind: string): string =>
  `SELECT step_id, start_ns AS at_ns, new_tokens AS token_rows FROM phase_stages WHERE phase = '${kind}' AND stage_id = step_id AND new_tokens > 0`;

const gemmRows = (context: FindingContext, kind: string): string =>
  `SELECT step_id, min(start_ns) AS at_ns, median(token_rows) AS token_rows FROM (${weightGemmsSql(context)}) WHERE kind = '${kind}' GROUP BY step_id`;

const normRows = (kind: string): string =>
  `SELECT step_id, min(start_ns) AS at_ns, median(try_cast(split_part(grid, ',', 1) AS BIGINT)) AS token_rows
   FROM phase_kernels WHERE step_kind = '${kind}' AND class = 'norm' AND grid LIKE '%,1,1' AND graph_node IS NULL GROUP BY step_id`;

/**
 * SQL of the rows of a step: as recorded by the program or a hook (steps), as in the shapes of its GEMMs, or by its norms, which have a
 * block per row.
 */
const rowsSql = (source: RowSource, context: FindingContext, kind: string): string =>
  `WITH step AS (${source === 'steps' ? stageRows(kind) : source === 'gemms' ? gemmRows(context, kind) : normRows(kind)}),
   pair AS (SELECT token_rows, token_rows - lag(token_rows) OVER (ORDER BY at_ns) AS more, at_ns FROM step),
   usual AS (SELECT more, count(*) AS n FROM pair WHERE more > 0 GROUP BY more ORDER BY n DESC, more LIMIT 1)
   SELECT count(*) AS steps, arg_min(token_rows, at_ns)::DOUBLE AS first_rows, arg_max(token_rows, at_ns)::DOUBLE AS last_rows, avg(token_rows) AS mean_rows,
     (SELECT more FROM usual)::DOUBLE AS grows_by, (SELECT n FROM usual) / nullif(count(more), 0) AS of_pairs FROM pair`;

type RowSource = 'steps' | 'gemms' | 'norms';
const sourceLabels: Record<RowSource, string> = { steps: 'recorded sizes', gemms: 'GEMMs', norms: 'norms' };

/** Recorded sizes come first, but a program may count only the new tokens, while kernels show all computed rows. */
async function judge(context: FindingContext, stage: Stage): Promise<FoundDraft | string> {
  const bySteps = context.scope ? await judgeBy('steps', context, stage) : 'no sizes';
  if (typeof bySteps !== 'string') return bySteps;
  return judgeBy(context.has('ops') ? 'gemms' : 'norms', context, stage);
}

async function judgeBy(
  source: RowSource,
  context: FindingContext,
  { kind, wall_ms: wall, work_ms: work }: Stage,
): Promise<FoundDraft | string> {
  const { rows, evidence } = await context.evidence<Row>(rowsSql(source, context, kind), ([row]) =>
    row
      ? `rows by ${sourceLabels[source]}: ${count(row.first_rows)} in the first of ${row.steps} steps, ${count(row.last_rows)} in the last, +${count(row.grows_by ?? 0)} per step`
      : 'no rows',
  );
  const [row] = rows;
  if (!row || row.steps < minSteps) return `${row?.steps ?? 0} steps with known rows`;
  const batch = row.grows_by ?? 0;
  if (batch <= 0 || (row.of_pairs ?? 0) < minPairShare || row.mean_rows < minTokens * batch)
    return `${plural(row.mean_rows, 'row')} by its ${sourceLabels[source]}, without even growth from step to step`;
  const { roofs } = context;
  const balance =
    context.scope && roofs
      ? (roofs.roofFlops('bfloat16').value ?? 0) / (roofs.roofBandwidth.value ?? Infinity)
      : freeRowsOnCpu;
  const gain = work * Math.max(0, 1 - Math.max(balance, batch) / row.mean_rows);
  const tokens = row.mean_rows / batch;
  if (gain < minShare * wall)
    return `each step recomputes ${plural(tokens, 'token')}, within the time to read the weights`;
  const phase = kind as 'decode' | 'mixed';
  return {
    stage: phase,
    title: `No KV cache: ${everyInstance(phase)} recomputes ${plural(tokens, 'token')} of each sequence`,
    at_stake_ms: gain,
    cause: `By its ${sourceLabels[source]}, ${instanceWord(phase)} computes ${count(row.mean_rows)} rows on average, +${count(batch)} per step: all tokens so far go through the whole model to generate one. With a KV cache, ${count(batch)} ${batch === 1 ? 'row is' : 'rows are'} enough.`,
    change: {
      kind: 'code',
      text: 'Keep keys and values of the tokens so far, and pass only the new token to the model.',
      example: 'out = model(token, past_key_values=cache, use_cache=True)',
    },
    gain: gainOf(
      wall,
      gain,
      `Kernel time is proportional to the rows, down to ${count(Math.max(balance, batch))} rows, where reading the weights dominates (${ms(work - gain)}).`,
      { low_ms: gain / 2, high_ms: work },
    ),
    confidence: 'medium',
    bars: [
      ...barsOf(context, phase, ['roofline', 'serial']),
      ...classBars(context, phase, [
        'gemm',
        'attention',
        'elementwise',
        'norm',
        'copy',
        'embedding',
        'other',
      ]),
    ],
    evidence: [evidence],
    check: context.scope ? checkAgain : checkOnCpu,
  };
}
