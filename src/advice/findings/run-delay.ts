import { literal } from '../../facts/trace/scope.js';
import type { FindingContext } from './rule.js';
import type { StageFacts } from './stage-facts.js';

/** Of the stage's time that must lie between two samples, or too little is known. */
const leastSampled = 0.9;

/** How long the launching thread was ready to run and waited for a core, in a mean instance of a stage. */
export interface RunDelay {
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
 * Waiting is taken as even between two samples (50 ms), which hold several steps: a mean of many steps is known by it, a
 * single step is not.
 * @returns null where it was not sampled, or where another thread than the main one launches
 */
export async function runDelay(
  context: FindingContext,
  { kind, wall_ms }: StageFacts,
): Promise<RunDelay | null> {
  const { scope } = context;
  if (!scope || !context.has('telemetry')) return null;
  const sql = runDelaySql(kind);
  const [row] = await context.database.query<DelayRow>(sql);
  if (!row || row.sampled_ms < leastSampled * row.window_ms) return null;
  // Under a profiler a step takes longer, and its waiting with it: what carries over is the share of the time.
  const delay_ms = (wall_ms * row.delay_ms) / row.window_ms;
  return { delay_ms, instances: row.instances, pid: row.pid, sql };
}

/**
 * Of the main thread that launches most; a launch of another thread is nothing that its waiting delays. A process id and a
 * time tell the program that was traced, whoever sampled it.
 */
function runDelaySql(kind: string): string {
  return `WITH launching AS (
       SELECT pid FROM focus_kernels WHERE pid IS NOT NULL AND coalesce(tid, pid) = pid GROUP BY pid
       HAVING count(*) > 0.5 * (SELECT count(*) FROM focus_kernels)),
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
