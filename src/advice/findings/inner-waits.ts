import type { PhaseKind } from '../../model/documents/trace.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Minimum waits between the launches of a step that prevent one CUDA graph of it: a single one may be a read that can move after the step. */
export const minInnerWaits = 2;
/** A wait is inside a step if at least this share of the step's launches is before it, and as many are after it. */
const marginShare = 0.05;

const waitsByContext = new WeakMap<FindingContext, Promise<Map<PhaseKind, number>>>();

/** Mean waits per instance with launches of the same instance before and after them; 0 of kinds that wait less than `minInnerWaits` times. */
export async function innerWaits(
  context: FindingContext,
  { kind, instances }: Pick<StageFacts, 'kind' | 'instances'>,
): Promise<number> {
  const waits = waitsByContext.get(context) ?? countInnerWaits(context);
  waitsByContext.set(context, waits);
  return ((await waits).get(kind) ?? 0) / instances;
}

/** By kind of stage, over all instances. */
async function countInnerWaits({ database }: FindingContext): Promise<Map<PhaseKind, number>> {
  const rows = await database.query<{ kind: PhaseKind; n: number }>(
    `WITH every_wait AS (SELECT kind, window_id, start_ns FROM finding_waits WHERE cause IN ('synchronize', 'read', 'copy')),
     several AS (SELECT kind FROM every_wait GROUP BY kind HAVING count(*) >= ${minInnerWaits} * count(DISTINCT window_id)),
     waits AS (SELECT * FROM every_wait JOIN several USING (kind)),
     launched AS (
       SELECT step_id AS window_id, quantile_disc(api_start_ns, ${marginShare}) AS first_ns, quantile_disc(api_start_ns, ${1 - marginShare}) AS last_ns
       FROM rank_kernels JOIN stages_in_phases USING (stage_id)
       WHERE api_start_ns IS NOT NULL AND step_id IN (SELECT window_id FROM waits) GROUP BY step_id)
     SELECT kind, count(*)::DOUBLE AS n FROM waits w JOIN launched l USING (window_id)
     WHERE w.start_ns BETWEEN l.first_ns AND l.last_ns GROUP BY kind`,
  );
  return new Map(rows.map(({ kind, n }) => [kind, n]));
}
