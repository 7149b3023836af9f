import { limitingBits, throttleReasons } from '../../model/throttle-reasons.js';
import type { SessionDatabase } from '../../session/query.js';

/**
 * A sample of a GPU covers the time to the next one of its series; one of the host is a mean since the previous one. At most this many
 * usual periods.
 */
const maxHeldPeriods = 3;

export const gpuScope = String.raw`scope SIMILAR TO 'gpu\d+(\.mig\d+)?'`;
const hostScopes = "scope IN ('host', 'process', 'other_processes', 'inferscope')";

/**
 * Creates the temporary tables that the other queries read: `monitor_samples` (every sample of GPUs and host with the
 * time it covers; a new `stretch` starts after each pause of the recorder; memory in use is also a metric) and
 * `monitor_reasons` (throttle reasons as NVML's bits, from any source format).
 */
export async function makeSamples(database: SessionDatabase): Promise<void> {
  await database.query(
    `CREATE TEMP TABLE monitor_samples AS
     WITH all_samples AS (
       SELECT scope, metric, t_ns, value FROM telemetry WHERE value IS NOT NULL AND t_ns IS NOT NULL AND (${gpuScope} OR ${hostScopes})
       UNION ALL
       SELECT 'gpu' || device, 'memory_used_bytes', t_ns, bytes::DOUBLE FROM memory
       WHERE kind = 'used' AND device IS NOT NULL AND bytes IS NOT NULL AND t_ns IS NOT NULL),
     with_next AS (
       SELECT *, lead(t_ns) OVER (PARTITION BY scope, metric ORDER BY t_ns) - t_ns AS next_ns,
         t_ns - lag(t_ns) OVER (PARTITION BY scope, metric ORDER BY t_ns) AS previous_ns,
         lead(value) OVER (PARTITION BY scope, metric ORDER BY t_ns) AS next_value FROM all_samples),
     usual AS (SELECT scope, metric, median(next_ns) AS usual_ns FROM with_next GROUP BY scope, metric)
     SELECT scope, metric, t_ns, value, next_value,
       CASE WHEN ${hostScopes} THEN least(coalesce(previous_ns, usual_ns), ${maxHeldPeriods} * usual_ns)
         WHEN next_ns IS NULL THEN 0 ELSE least(next_ns, ${maxHeldPeriods} * usual_ns) END AS held_ns,
       coalesce(sum(CASE WHEN next_ns > ${maxHeldPeriods} * usual_ns THEN 1 ELSE 0 END) OVER (
         PARTITION BY scope, metric ORDER BY t_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS stretch
     FROM with_next JOIN usual USING (scope, metric)`,
  );
  const reasonCases = throttleReasons
    .map(({ bit, name }) => `WHEN metric SIMILAR TO 'clocks_(event|throttle)_reasons_${name}' THEN ${bit}`)
    .join(' ');
  // Only metrics that name a reason count for throttling.
  await database.query(
    `CREATE TEMP TABLE monitor_reasons AS
     SELECT scope, t_ns, max(held_ns) AS held_ns, max(stretch) AS stretch, bit_or(CASE WHEN value = 0 THEN 0 ELSE bits END) & ${limitingBits} AS bits FROM (
       SELECT scope, t_ns, held_ns, stretch, value, CASE
           WHEN metric = 'throttle_bits' THEN value::BIGINT
           WHEN metric = 'power_violation_percent' THEN 4
           WHEN metric = 'thermal_violation' THEN 32
           ${reasonCases} END AS bits
       FROM monitor_samples WHERE ${gpuScope}) WHERE bits IS NOT NULL
     GROUP BY scope, t_ns`,
  );
}
