import type { FindingContext } from '../rule.js';
import { mainThread, type OperatorStage } from './operator-stages.js';

/** Minimum share of the stage's time that must lie between two samples. */
const minSampledShare = 0.9;

/** What the main thread does in a mean instance of a stage, ms. */
export interface Sleep {
  /** It waits for a lock, data or a timer: it is neither on a core nor ready to run, so no other process causes this. */
  asleep_ms: number;
  /** Time of other threads of the program and its processes on cores. */
  others_ms: number;
}

/**
 * From the kernel's counters of the main thread (inferscope run on Linux), which are sampled every 50 ms: valid for a mean of many steps.
 * @returns null if they do not cover the stage
 */
export async function sleepOf(
  { operators, has }: FindingContext,
  { kind, wall_ms }: OperatorStage,
): Promise<Sleep | null> {
  if (!operators || !has('telemetry')) return null;
  const [row] = await operators.database.query<{
    window_ms: number;
    sampled_ms: number;
    on_core_ms: number;
    delay_ms: number;
    program_ms: number;
  }>(
    `WITH main AS (SELECT any_value(pid) AS pid FROM rank_ops WHERE tid = ${mainThread} AND tid = pid),
       samples AS (
         SELECT metric, value, t_ns AS until_ns, lag(t_ns) OVER (PARTITION BY execution_id, metric ORDER BY t_ns) AS from_ns FROM telemetry, main
         WHERE (metric IN ('on_core_percent', 'run_delay_percent') AND scope = 'thread' || CAST(main.pid AS BIGINT))
           OR (metric = 'cores_busy' AND scope = 'process' AND execution_id = '${operators.source.attribution.execution_id}')),
       steps AS (SELECT start_ns, end_ns FROM windows WHERE kind = '${kind}'),
       shared AS (SELECT metric, value, least(until_ns, end_ns) - greatest(from_ns, start_ns) AS ns FROM steps JOIN samples ON from_ns < end_ns AND until_ns > start_ns)
     SELECT (SELECT sum(end_ns - start_ns) FROM steps) / 1e6 AS window_ms, coalesce(sum(ns) FILTER (metric = 'on_core_percent'), 0) / 1e6 AS sampled_ms,
       sum(ns * value / 100) FILTER (metric = 'on_core_percent') / 1e6 AS on_core_ms, sum(ns * value / 100) FILTER (metric = 'run_delay_percent') / 1e6 AS delay_ms,
       coalesce(sum(ns * value) FILTER (metric = 'cores_busy'), 0) / 1e6 AS program_ms
     FROM shared`,
  );
  if (!row || row.sampled_ms < minSampledShare * row.window_ms) return null;
  const { window_ms, on_core_ms, delay_ms, program_ms } = row;
  const share = wall_ms / window_ms;
  return {
    asleep_ms: Math.max(0, share * (window_ms - on_core_ms - delay_ms)),
    others_ms: Math.max(0, share * (program_ms - on_core_ms)),
  };
}
