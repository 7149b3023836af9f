import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Waits between its launches from which a step cannot be one graph: a last value can be read after it. */
export const minInner = 2;
/** Share of a step's launches before a wait and after it. */
const ofLaunches = 0.05;

/** Waits per instance with launches of the same instance before and after them. */
export async function innerWaits(
  { database }: FindingContext,
  { kind, instances }: StageFacts,
): Promise<number> {
  const [row] = await database.query<{ n: number }>(
    `SELECT count(*) / ${instances} AS n FROM finding_waits w
     JOIN (SELECT step_id AS window_id, quantile_disc(api_start_ns, ${ofLaunches}) AS first_ns, quantile_disc(api_start_ns, ${1 - ofLaunches}) AS last_ns
           FROM own_kernels JOIN phase_of USING (stage_id) WHERE api_start_ns IS NOT NULL GROUP BY step_id) l USING (window_id)
     WHERE w.kind = '${kind}' AND w.cause IN ('synchronize', 'read', 'copy') AND w.start_ns BETWEEN l.first_ns AND l.last_ns`,
  );
  return row?.n ?? 0;
}
