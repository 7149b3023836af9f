import { limitingBits } from '../../../model/throttle-reasons.js';
import { literal } from '../../../facts/trace/scope.js';
import type { IssueCode } from '../../../model/issue-codes.js';

/** Timed repeats of a benchmark, from the first rank. */
const repeats = `SELECT execution_id, point, launch, batch_size, output_len, start_ns, end_ns, (end_ns - start_ns) / 1e6 AS e2e_ms
    FROM iterations WHERE point IS NOT NULL AND NOT coalesce(warmup, false) AND coalesce(rank, 0) = 0`;

/** Samples taken during a point's timed repeats. */
const sampledSql = (condition: string, columns: string) =>
  `WITH repeats AS (${repeats})
   SELECT r.execution_id, r.point, t.scope, t.metric, count(*) AS samples, ${columns}
   FROM telemetry t JOIN repeats r ON r.execution_id = t.execution_id AND t.t_ns BETWEEN r.start_ns AND r.end_ns
   WHERE t.value IS NOT NULL AND ${condition} GROUP BY ALL ORDER BY r.execution_id, r.point, t.scope, t.metric`;

const gpu = "t.scope LIKE 'gpu%'";

/** The rows behind a benchmark flag (src/facts/bench/flags.ts), for the points that have it. */
const queries: Record<string, string> = {
  low_utilization: sampledSql(
    `((${gpu} AND t.metric = 'utilization_percent') OR (t.scope = 'process' AND t.metric = 'cores_busy'))`,
    'round(avg(t.value), 2) AS mean, round(min(t.value), 2) AS min, round(max(t.value), 2) AS max',
  ),
  throttling: sampledSql(
    `${gpu} AND t.metric = 'throttle_bits'`,
    `count_if((t.value::BIGINT & ${limitingBits}) <> 0) AS throttled`,
  ),
  other_process: `SELECT execution_id, scope, metric, count(*) AS samples, max(value) AS max, count_if(value > 1) AS shared_samples FROM telemetry
   WHERE metric = 'compute_processes' AND value IS NOT NULL GROUP BY ALL
   UNION ALL
   SELECT m.execution_id, 'gpu' || m.device, 'memory used before the first repeat, GiB', count(*), round(max(m.bytes) / 1073741824, 2), NULL
   FROM memory m JOIN (SELECT execution_id, min(start_ns) AS start_ns FROM iterations GROUP BY execution_id) i USING (execution_id)
   WHERE m.kind = 'used' AND m.device IS NOT NULL AND m.t_ns < i.start_ns GROUP BY ALL ORDER BY 1, 2, 3`,
  no_scaling: `WITH repeats AS (${repeats})
   SELECT execution_id, point, batch_size, count(*) AS repeats, round(avg(e2e_ms), 3) AS e2e_ms, round(avg(1e3 * batch_size * output_len / e2e_ms), 1) AS output_tokens_per_s
   FROM repeats GROUP BY ALL ORDER BY execution_id, batch_size, point`,
  out_of_memory: `SELECT execution_id, point, launch, outcome, text FROM points WHERE outcome = 'out_of_memory' ORDER BY execution_id, point, launch`,
  high_variance: `WITH repeats AS (${repeats})
   SELECT execution_id, point, launch, count(*) AS repeats, round(avg(e2e_ms), 3) AS e2e_ms, round(stddev_samp(e2e_ms) / avg(e2e_ms), 4) AS variation
   FROM repeats GROUP BY ALL ORDER BY execution_id, point, launch`,
  warmup_unstable: `SELECT execution_id, point, launch, warmup_iterations, stable FROM points WHERE stable = false ORDER BY execution_id, point, launch`,
  one_launch: `WITH repeats AS (${repeats})
   SELECT execution_id, count(DISTINCT launch) AS launches, count(*) AS repeats FROM repeats GROUP BY execution_id ORDER BY execution_id`,
};

/** @param points that have the flag; null for all points */
export function benchFlagSql(code: IssueCode, points: readonly string[] | null): string {
  const sql = queries[code];
  if (sql === undefined) throw new Error(`the flag ${code} has no evidence query`);
  return points === null
    ? sql
    : `SELECT * FROM (${sql}) WHERE point IN (${points.map((point) => literal(point)).join(', ')})`;
}

/**
 * Evidence of a launch-bound decode step: its period and busy cores in timed repeats, and kernels and device work in the
 * instrumented repeat; one row per process launch.
 */
export const benchStepSql = (executionId: string, point: string): string =>
  `WITH timed AS (
     SELECT coalesce(launch, 0) AS launch, start_ns, end_ns, tpot_ns FROM iterations
     WHERE execution_id = ${literal(executionId)} AND point = ${literal(point)} AND NOT coalesce(warmup, false) AND coalesce(rank, 0) = 0),
   cores AS (
     SELECT r.launch, avg(t.value) AS busy FROM telemetry t JOIN timed r ON t.t_ns BETWEEN r.start_ns AND r.end_ns
     WHERE t.execution_id = ${literal(executionId)} AND t.scope = 'process' AND t.metric = 'cores_busy' AND t.value IS NOT NULL GROUP BY r.launch)
   SELECT d.launch, round((SELECT avg(tpot_ns) FROM timed t WHERE t.launch = coalesce(d.launch, 0)) / 1e6, 4) AS step_ms, round(d.kernels / d.stages, 2) AS kernels,
     round(d.kernel_ns / d.stages / 1e6, 4) AS kernel_ms, round(d.busy_ns / d.stages / 1e6, 4) AS busy_ms,
     round((SELECT busy FROM cores c WHERE c.launch = coalesce(d.launch, 0)), 3) AS cores_busy
   FROM device_work d
   WHERE d.execution_id = ${literal(executionId)} AND d.point = ${literal(point)} AND d.kind = 'decode' AND d.stages > 0 AND coalesce(d.rank, 0) = 0
   ORDER BY d.launch`;
