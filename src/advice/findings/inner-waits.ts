import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Minimum waits between the launches of a step that prevent one CUDA graph of it: a single one may be a read that can move after the step. */
export const minInnerWaits = 2;
/** A wait is inside a step if at least this share of the step's launches is before it, and as many are after it. */
const marginShare = 0.05;

/** Mean waits per instance with launches of the same instance before and after them. */
export async function innerWaits(
  { database }: FindingContext,
  { kind, instances }: StageFacts,
): Promise<number> {
  const [row] = await database.query<{ n: number }>(
    `SELECT count(*) / ${instances} AS n FROM finding_waits w
     JOIN (SELECT step_id AS window_id, quantile_disc(api_start_ns, ${marginShare}) AS first_ns, quantile_disc(api_start_ns, ${1 - marginShare}) AS last_ns
           FROM rank_kernels JOIN stages_in_phases USING (stage_id) WHERE api_start_ns IS NOT NULL GROUP BY step_id) l USING (window_id)
     WHERE w.kind = '${kind}' AND w.cause IN ('synchronize', 'read', 'copy') AND w.start_ns BETWEEN l.first_ns AND l.last_ns`,
  );
  return row?.n ?? 0;
}
