import { limitingBits, throttleReasons } from '../../model/throttle-reasons.js';
import type { SessionDatabase } from '../../session/query.js';
import { heldSamples, hostScopes } from '../held-samples.js';

export const gpuScope = String.raw`scope SIMILAR TO 'gpu\d+(\.mig\d+)?'`;

/**
 * Creates the temporary tables that the other queries read: `monitor_samples` (every sample of GPUs and host with the
 * time it covers; a new `stretch` starts after each pause of the recorder; memory in use is also a metric) and
 * `monitor_reasons` (throttle reasons as NVML's bits, from any source format).
 */
export async function makeSamples(database: SessionDatabase): Promise<void> {
  await database.query(
    `CREATE TEMP TABLE monitor_samples AS ${heldSamples(
      `SELECT execution_id, scope, metric, t_ns, value FROM telemetry WHERE value IS NOT NULL AND t_ns IS NOT NULL AND (${gpuScope} OR ${hostScopes})
       UNION ALL
       SELECT execution_id, 'gpu' || device, 'memory_used_bytes', t_ns, bytes::DOUBLE FROM memory
       WHERE kind = 'used' AND device IS NOT NULL AND bytes IS NOT NULL AND t_ns IS NOT NULL`,
    )}`,
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
