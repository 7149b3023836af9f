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
  tid: number;
  /** Who recorded it. */
  source: 'kernel' | 'nsys';
  sql: string;
}

interface DelayRow {
  pid: number;
  tid: number;
  metric: string;
  instances: number;
  window_ms: number;
  sampled_ms: number;
  delay_ms: number;
}

/**
 * Assumes even waiting between two samples of the kernel's counter (50 ms), which span several steps: valid for a mean of many steps, not
 * for a single step. nsys's context switches have the exact times. The counter is preferred, because it also has the waits after a wakeup.
 * @returns null if neither covers the launching thread
 */
export async function runDelay(
  context: FindingContext,
  { kind, wall_ms }: StageFacts,
): Promise<RunDelay | null> {
  const { scope } = context;
  if (!scope || !context.has('telemetry')) return null;
  const sql = runDelaySql(kind);
  const row = (await context.database.query<DelayRow>(sql)).find(
    ({ sampled_ms, window_ms }) => sampled_ms >= minSampledShare * window_ms,
  );
  if (!row) return null;
  // A profiler lengthens both step and waiting: the share of the time carries over.
  const delay_ms = (wall_ms * row.delay_ms) / row.window_ms;
  const { instances, pid, tid } = row;
  return {
    delay_ms,
    instances,
    pid,
    tid,
    source: row.metric === 'run_delay_percent' ? 'kernel' : 'nsys',
    sql,
  };
}

/**
 * For the thread that launches most. Process, thread and time identify the traced program, independent of the sampler, which has the main
 * threads of processes.
 */
function runDelaySql(kind: string): string {
  return `WITH launching AS (
       SELECT pid, coalesce(tid, pid) AS tid FROM phase_kernels WHERE pid IS NOT NULL GROUP BY ALL
       HAVING count(*) > 0.5 * (SELECT count(*) FROM phase_kernels)),
     samples AS (
       SELECT pid, tid, metric, value, t_ns AS until_ns, lag(t_ns) OVER (PARTITION BY pid, metric ORDER BY t_ns, value) AS from_ns
       FROM telemetry JOIN launching USING (pid)
       WHERE metric IN ('run_delay_percent', 'preempted_percent') AND scope = 'thread' || CAST(tid AS BIGINT)),
     steps AS (SELECT count(*) AS instances, sum(end_ns - start_ns) / 1e6 AS window_ms FROM windows WHERE kind = ${literal(kind)}),
     shared AS (
       SELECT s.pid, s.tid, s.metric, s.value, least(s.until_ns, w.end_ns) - greatest(s.from_ns, w.start_ns) AS ns
       FROM windows w JOIN samples s ON s.from_ns < w.end_ns AND s.until_ns > w.start_ns WHERE w.kind = ${literal(kind)})
     SELECT pid, tid, metric, any_value(instances) AS instances, any_value(window_ms) AS window_ms, sum(ns) / 1e6 AS sampled_ms,
       sum(ns * value / 100) / 1e6 AS delay_ms
     FROM shared, steps GROUP BY pid, tid, metric ORDER BY metric = 'run_delay_percent' DESC`;
}
