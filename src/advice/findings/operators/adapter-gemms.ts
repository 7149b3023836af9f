import { gainOf } from '../gain.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { classBars, minShare } from '../stage-rule.js';
import { everyInstance, instanceWord, ms, part, plural } from '../words.js';
import { checkOnCpu } from './copied-context.js';
import type { OperatorStage } from './operator-stages.js';
import { weightGemmsSql } from './weight-gemms.js';

/** Largest rank of an adapter; latent attention has larger ones. */
const maxRank = 256;
/** Minimum size of both sides of the adapted GEMM, as a multiple of the rank. */
const minRankMultiple = 4;
/** Minimum pairs per step: a single one may be a part of the model. */
const minPairs = 2;

/** Classes of operators that compute on the values between two GEMMs: such GEMMs cannot be merged. */
const computing = `('norm', 'elementwise', 'attention', 'embedding', 'moe_routing', 'sampling', 'communication')`;

type Row = { rank: number; per_step: number; ms: number };

const pairsSql = (context: FindingContext, { kind, instances }: OperatorStage): string =>
  `WITH operator AS (
     FROM (${weightGemmsSql(context)}) UNION ALL BY NAME
     SELECT p.kind, p.step_id, start_ns FROM rank_ops JOIN stages_in_phases p USING (stage_id) WHERE class IN ${computing}),
   pair AS (
     SELECT inner_size AS rank, ns + lag(ns) OVER step AS ns, lag(inner_size) OVER step AS from_size, lag(outer_size) OVER step AS between_size, outer_size AS to_size
     FROM operator WHERE kind = '${kind}' WINDOW step AS (PARTITION BY step_id ORDER BY start_ns))
   SELECT rank::DOUBLE AS rank, round(count(*) / ${instances}, 2) AS per_step, round(sum(ns) / 1e6 / ${instances}, 4) AS ms FROM pair
   WHERE between_size = rank AND rank <= ${maxRank} AND least(from_size, to_size) >= ${minRankMultiple} * rank GROUP BY rank ORDER BY ms DESC`;

/** Two GEMMs in a row with a small dimension and no other computation between them: a low-rank adapter. */
export async function findAdapters(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  const { rows, evidence } = await context.evidence<Row>(pairsSql(context, stage), (evidenceRows) =>
    evidenceRows.length === 0
      ? 'no two GEMMs in a row with only a small dimension between them'
      : evidenceRows
          .map((row) => `rank ${row.rank}: ${plural(row.per_step, 'pair')} of GEMMs per step, ${ms(row.ms)}`)
          .join('; '),
  );
  const time = rows.reduce((sum, row) => sum + row.ms, 0);
  const pairs = rows.reduce((sum, row) => sum + row.per_step, 0);
  if (pairs < minPairs || time < minShare * wall) return `low-rank GEMMs take ${part(time, wall)}`;
  return {
    stage: kind,
    title: (share) =>
      `Unmerged adapters: ${plural(pairs, 'pair')} of low-rank GEMMs take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} computes ${plural(pairs, 'pair')} of GEMMs with a dimension of ${rows.map(({ rank }) => rank).join(', ')} between them: low-rank adapters next to the weights.`,
    change: {
      kind: 'code',
      text: 'Merge the adapters into the weights once, before inference.',
      example: 'model = model.merge_and_unload()  # PEFT',
    },
    gain: gainOf(
      wall,
      time,
      'The two GEMMs of every adapter are removed; their scaling and addition come on top.',
      { high_ms: Math.min(wall, 1.5 * time) },
    ),
    confidence: 'medium',
    covers: ['casts_and_layout_copies'],
    bars: classBars(context, kind, ['gemm']),
    evidence: [evidence],
    check: checkOnCpu,
  };
}
