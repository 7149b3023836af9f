import { literal } from '../../facts/trace/scope.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Minimum share of the stage's time that must lie between two samples. */
const minSampledShare = 0.9;

/** Time that the launching thread was ready to run but waited for a core, per mean instance of a stage. */
interface RunDelay {
  delay_ms: number;
  instances: number;
  pid: number;
  sql: string;
}

interface DelayRow {
  pid: number;
  instances: number;
  window_ms: number;
  sampled_ms: number;
  delay_ms: number;
}

/**
 * Assumes even waiting between two samples (50 ms), which span several steps: valid for a mean of many steps, not for a single
 * step.
 * @returns null if it was not sampled, or if a thread other than the main one launches
 */
export async function runDelay(
  context: FindingContext,
  { kind, wall_ms }: StageFacts,
): Promise<RunDelay | null> {
  const { scope } = context;
  if (!scope || !context.has('telemetry')) return null;
  const sql = runDelaySql(kind);
  const [row] = await context.database.query<DelayRow>(sql);
  if (!row || row.sampled_ms < minSampledShare * row.window_ms) return null;
  // A profiler lengthens both step and waiting: the share of the time carries over.
  const delay_ms = (wall_ms * row.delay_ms) / row.window_ms;
  return { delay_ms, instances: row.instances, pid: row.pid, sql };
}

/**
 * For the main thread if it launches most; its waiting does not delay launches of other threads. Process id and time identify
 * the traced program, independent of the sampler.
 */
function runDelaySql(kind: string): string {
  return `WITH launching AS (
       SELECT pid FROM phase_kernels WHERE pid IS NOT NULL AND coalesce(tid, pid) = pid GROUP BY pid
       HAVING count(*) > 0.5 * (SELECT count(*) FROM phase_kernels)),
     samples AS (
       SELECT pid, value, t_ns AS until_ns, lag(t_ns) OVER (PARTITION BY pid ORDER BY t_ns) AS from_ns
       FROM telemetry JOIN launching USING (pid)
       WHERE metric = 'run_delay_percent'),
     steps AS (SELECT count(*) AS instances, sum(end_ns - start_ns) / 1e6 AS window_ms FROM windows WHERE kind = ${literal(kind)}),
     shared AS (
       SELECT s.pid, s.value, least(s.until_ns, w.end_ns) - greatest(s.from_ns, w.start_ns) AS ns
       FROM windows w JOIN samples s ON s.from_ns < w.end_ns AND s.until_ns > w.start_ns WHERE w.kind = ${literal(kind)})
     SELECT pid, any_value(instances) AS instances, any_value(window_ms) AS window_ms, sum(ns) / 1e6 AS sampled_ms,
       sum(ns * value / 100) / 1e6 AS delay_ms
     FROM shared, steps GROUP BY pid`;
}
