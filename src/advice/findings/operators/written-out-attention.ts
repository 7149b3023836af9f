import { gainOf } from '../gain.js';
import { fusedAttentionChange, multipliesScores } from '../attention-scores.js';
import { softmaxOperators } from '../kernel-roles.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { classBars, minShare } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part } from '../words.js';
import { checkOnCpu } from './copied-context.js';
import { mainThread, type OperatorStage, operatorsSql } from './operator-stages.js';
import { plural } from '../../../vocabulary/format.js';

/** Batched GEMMs of a stage in order, with the time of the operators between each one and the next. */
const batchedGemmsSql = ({ kind }: OperatorStage): string =>
  `WITH op AS (
     SELECT window_id, start_ns, name, input_shapes, coalesce(self_dur_ns, dur_ns) AS self_ns, class, name IN ('aten::bmm', 'aten::baddbmm') AS gemm
     FROM (${operatorsSql(kind)}) WHERE tid = ${mainThread}),
   numbered AS (SELECT *, sum(CASE WHEN gemm THEN 1 ELSE 0 END) OVER (PARTITION BY window_id ORDER BY start_ns, name ROWS UNBOUNDED PRECEDING) AS nth FROM op),
   span AS (
     SELECT window_id, nth, any_value(input_shapes) FILTER (gemm) AS shapes, sum(self_ns) FILTER (NOT gemm) AS between_ns, sum(self_ns) FILTER (gemm) AS gemm_ns,
       count_if(NOT gemm AND class IN ('elementwise', 'norm', 'attention')) AS operators,
       count_if(NOT gemm AND (class = 'norm' OR ${softmaxOperators})) AS reductions,
       -- A layer's weights, or attention in one operator: what follows belongs to another attention.
       count_if(NOT gemm AND (name IN ('aten::mm', 'aten::addmm', 'aten::mv', 'aten::addmv') OR class = 'sampling'
         OR (class = 'attention' AND NOT ${softmaxOperators}))) AS others
     FROM numbered WHERE nth > 0 GROUP BY window_id, nth),
   pair AS (SELECT *, lead(shapes) OVER (PARTITION BY window_id ORDER BY nth) AS next_shapes FROM span)
   SELECT shapes, next_shapes, count(*) AS pairs, round(avg(operators), 1) AS operators_between, round(sum(between_ns) / 1e6, 4) AS between_ms, round(sum(gemm_ns) / 1e6, 4) AS gemm_ms
   FROM pair WHERE reductions > 0 AND others = 0 AND next_shapes IS NOT NULL GROUP BY shapes, next_shapes ORDER BY between_ms DESC, shapes`;

type Row = { shapes: string; next_shapes: string; pairs: number; between_ms: number; gemm_ms: number };

/** One GEMM writes the attention scores to memory, and the next one reads them. */
export async function findUnfusedAttention(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall, instances } = stage;
  const { rows, evidence } = await context.evidence<Row>(batchedGemmsSql(stage), (evidenceRows) =>
    evidenceRows
      .filter(isAttention)
      .slice(0, 2)
      .map(
        (row) =>
          `${row.shapes} then ${row.next_shapes}: ${row.pairs} times, ${ms(row.between_ms)} between them`,
      )
      .join('; '),
  );
  const attentionRows = rows.filter(isAttention);
  const between = attentionRows.reduce((sum, row) => sum + row.between_ms, 0) / instances;
  const pairs = attentionRows.reduce((sum, row) => sum + row.pairs, 0) / instances;
  if (between < minShare * wall)
    return `operators between the two GEMMs of attention take ${part(between, wall)}`;
  return {
    stage: kind,
    title: (share) =>
      `Eager attention: ${plural(pairs, 'unfused attention')} spend ${share} of ${everyInstance(kind)} between their two GEMMs`,
    at_stake_ms: between,
    cause: `In ${instanceWord(kind)} one GEMM writes the attention scores to memory, then scale, mask, softmax and copies read and write them (${ms(between)}), and the second GEMM reads them. A fused operator keeps them in the cache.`,
    change: await fusedAttentionChange(
      context.database,
      'F.scaled_dot_product_attention(q, k, v, is_causal=True)  # attn_implementation="sdpa"',
    ),
    gain: gainOf(
      wall,
      0.8 * between,
      'The GEMMs take as long as now; the softmax inside the fused operator takes a fifth of the time between them.',
      { low_ms: 0.5 * between, high_ms: between },
    ),
    confidence: 'medium',
    bars: classBars(context, kind, ['attention', 'elementwise', 'norm', 'copy']),
    evidence: [evidence],
    check: checkOnCpu,
  };
}

const parseShapes = (shapes: string): number[][] => JSON.parse(shapes) as number[][];
const isAttention = ({ shapes, next_shapes: next }: Row): boolean =>
  multipliesScores(parseShapes(shapes), parseShapes(next));
