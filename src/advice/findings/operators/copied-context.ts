import { gainOf } from '../gain.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import { classBars, minShare } from '../stage-rule.js';
import { instanceWord, count, everyInstance, ms, part } from '../words.js';
import { type OperatorStage, operatorsSql } from './operator-stages.js';
import { formatQuantity } from '../../../vocabulary/format.js';

/** With fewer steps, growth may be chance. */
const minSteps = 4;

type Row = {
  operator: string;
  grows: boolean;
  per_step: number;
  us: number;
  ms: number;
  first_elements: number;
  last_elements: number;
};

/** Elements that a call writes: the whole concatenation, or the destination of a copy. */
const elements = `CASE WHEN name IN ('aten::cat', 'aten::stack')
  THEN list_sum(list_transform(json_extract(input_shapes, '$[0]')::BIGINT[][], s -> list_aggregate(s, 'product')))
  ELSE list_aggregate(json_extract(input_shapes, '$[0]')::BIGINT[], 'product') END`;

/**
 * Concatenations and copies between tensors of one type. A call grows if it writes more elements from step to step; this uses
 * exact sizes, not times.
 */
const copiesSql = ({ kind, instances }: OperatorStage): string =>
  `WITH copy AS (
     SELECT name, window_id, w_start, coalesce(self_dur_ns, dur_ns) AS ns, ${elements} AS elements,
       row_number() OVER (PARTITION BY name, window_id ORDER BY start_ns) AS nth FROM (${operatorsSql(kind)})
     WHERE input_shapes IS NOT NULL AND (name IN ('aten::cat', 'aten::stack')
       OR (name = 'aten::copy_' AND json_extract_string(input_types, '$[0]') = json_extract_string(input_types, '$[1]')))),
   numbered AS (
     SELECT c.*, row_number() OVER (PARTITION BY name, nth, coalesce(w.iteration, 0) ORDER BY w_start) AS x FROM copy c JOIN windows w ON w.stage_id = c.window_id),
   call AS (
     SELECT name, nth, count(*) AS n, sum(ns) AS ns, arg_min(elements, x) AS first_elements, arg_max(elements, x) AS last_elements,
       count(DISTINCT x) >= ${minSteps} AND regr_slope(elements, x) > 0 AND arg_max(elements, x) > arg_min(elements, x) AND coalesce(corr(elements, x), 0) > 0.9 AS grows
     FROM numbered GROUP BY name, nth)
   SELECT name AS operator, grows, round(sum(n) / ${instances}, 2) AS per_step, round(sum(ns) / sum(n) / 1e3, 2) AS us, round(sum(ns) / 1e6 / ${instances}, 4) AS ms,
     sum(first_elements)::DOUBLE AS first_elements, sum(last_elements)::DOUBLE AS last_elements
   FROM call GROUP BY ALL ORDER BY ms DESC, operator, grows`;

/** Keys and values of all earlier tokens are copied in every step, in operators that grow. */
export async function findCopiedContext(
  context: FindingContext,
  stage: OperatorStage,
): Promise<FoundDraft | string> {
  const { kind, wall_ms: wall } = stage;
  if (kind !== 'decode' && kind !== 'mixed') return 'only steps that generate tokens are judged';
  const { rows, evidence } = await context.evidence<Row>(copiesSql(stage), (evidenceRows) =>
    evidenceRows
      .filter(({ grows }) => grows)
      .slice(0, 2)
      .map(
        (row) =>
          `${row.operator}: ${row.per_step} per step, ${formatQuantity(row.us, 'us')} each, from ${row.first_elements} elements in the first step to ${row.last_elements} in the last`,
      )
      .join('; '),
  );
  const growing = rows.filter(({ grows }) => grows);
  const time = growing.reduce((sum, row) => sum + row.ms, 0);
  const n = growing.reduce((sum, row) => sum + row.per_step, 0);
  const reason = `copies that grow with the steps take ${part(time, wall)}`;
  if (time < minShare * wall) return reason;
  const names = growing.map(({ operator }) => operator).join(' and ');
  return {
    stage: kind,
    title: (share) =>
      `KV cache copied: ${count(n)} calls of ${names} that grow with the context take ${share} of ${everyInstance(kind)}`,
    at_stake_ms: time,
    cause: `${instanceWord(kind)} spends ${ms(time)} in ${count(n)} copies that grow from step to step: all earlier keys and values are read and written again to add one token.`,
    change: {
      kind: 'code',
      text: 'Write new keys and values into a cache allocated once (static or paged), and attend to a view of it, without clones or repeated heads.',
      example:
        growing[0]!.operator === 'aten::copy_'
          ? 'keys[:, :, position] = k; F.scaled_dot_product_attention(q, keys[:, :, :n], values[:, :, :n], enable_gqa=True)'
          : 'keys[:, :, position] = k  # instead of torch.cat((keys, k), 2)',
    },
    gain: gainOf(
      wall,
      0.95 * time,
      'Writing only the new tokens takes 5 % of this time; attention takes as long as now.',
      { low_ms: 0.8 * time, high_ms: time },
    ),
    confidence: 'high',
    bars: classBars(context, kind, ['copy']),
    evidence: [evidence],
    check: checkOnCpu,
  };
}

/** Without a GPU there is no clean timeline: repeat the same run. */
export const checkOnCpu =
  'inferscope run --evaluator torch -- <the changed command>, then inferscope session compare @last~1 @last';
