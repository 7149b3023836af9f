/** Most usual periods that a sample covers: a longer one is a pause of the recorder. */
const maxHeldPeriods = 3;

export const hostScopes = "scope IN ('host', 'process', 'other_processes', 'inferscope')";

/**
 * Samples with the time that each covers: one of a GPU the time to the next of its series; one of the host, which is a
 * mean, the time since the previous one. A new `stretch` starts after each pause of the recorder.
 * @param samples query of execution_id, scope, metric, t_ns, value
 */
export const heldSamples = (samples: string): string =>
  `WITH all_samples AS (${samples}),
     with_next AS (
       SELECT *, lead(t_ns) OVER series - t_ns AS next_ns, t_ns - lag(t_ns) OVER series AS previous_ns,
         lead(value) OVER series AS next_value FROM all_samples
       WINDOW series AS (PARTITION BY execution_id, scope, metric ORDER BY t_ns)),
     usual AS (SELECT execution_id, scope, metric, median(next_ns) AS usual_ns FROM with_next GROUP BY ALL)
     SELECT n.execution_id, n.scope, n.metric, t_ns, value, next_value,
       CASE WHEN ${hostScopes.replace('scope', 'n.scope')} THEN least(coalesce(previous_ns, usual_ns), ${maxHeldPeriods} * usual_ns)
         WHEN next_ns IS NULL THEN 0 ELSE least(next_ns, ${maxHeldPeriods} * usual_ns) END AS held_ns,
       coalesce(sum(CASE WHEN next_ns > ${maxHeldPeriods} * usual_ns THEN 1 ELSE 0 END) OVER (
         PARTITION BY n.execution_id, n.scope, n.metric ORDER BY t_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS stretch
     FROM with_next n JOIN usual u ON u.execution_id IS NOT DISTINCT FROM n.execution_id AND u.scope = n.scope AND u.metric = n.metric`;

/** Mean of held samples over the time that they cover: the one mean that every command shows. */
export const heldMean = 'coalesce(sum(value * held_ns) / nullif(sum(held_ns), 0), avg(value))';
