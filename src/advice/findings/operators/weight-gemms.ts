import { stepKindsSql } from '../../../model/record.js';
import type { FindingContext } from '../rule.js';

/** GEMMs with weights on one side: the rows are the tokens of a step. */
const withShapes = `name IN ('aten::mm', 'aten::addmm') AND input_shapes IS NOT NULL`;
/** The first argument of `addmm` is the addend. */
const matrix = (side: 0 | 1) =>
  `CASE name WHEN 'aten::mm' THEN json_extract(input_shapes, '$[${side}]') ELSE json_extract(input_shapes, '$[${side + 1}]') END`;

/**
 * SQL of the weight GEMMs with recorded shapes in prefills and steps: kind, step_id, start_ns, token_rows, inner_size,
 * outer_size (token_rows × inner_size times inner_size × outer_size) and ns, on the device if one was used.
 */
export function weightGemmsSql({ scope }: FindingContext): string {
  const ns = scope ? 'coalesce(k.ns, 0)' : 'coalesce(self_dur_ns, dur_ns)';
  const onDevice = scope
    ? 'LEFT JOIN (SELECT op_id, sum(exclusive_ns) AS ns FROM rank_kernels WHERE op_id IS NOT NULL GROUP BY op_id) k USING (op_id)'
    : '';
  return `SELECT kind, step_id, start_ns, (a->0)::BIGINT AS token_rows, (a->1)::BIGINT AS inner_size, (b->1)::BIGINT AS outer_size, ns FROM (
     SELECT p.kind, p.step_id, start_ns, ${matrix(0)} AS a, ${matrix(1)} AS b, ${ns} AS ns
     FROM (SELECT op_id, stage_id, name, input_shapes, start_ns, dur_ns, self_dur_ns FROM rank_ops WHERE ${withShapes}) o JOIN stages_in_phases p USING (stage_id) ${onDevice}
     WHERE p.kind IN ${stepKindsSql})`;
}
