import { literal, type TraceScope } from '../../facts/trace/scope.js';

/** Host time of a mean step of one kind without its waits, ms. */
interface HostTime {
  captured_ms: number;
  /** Times the median call of the model in the clean execution over the median call as captured. */
  own_ms: number | null;
}

/** Maximum share of a call of the model in which the host waits: the rest is host work, with and without a profiler. */
const maxWaitShare = 0.02;

/**
 * Host times by kind of step, each to the start of the step that follows, else to the end of its range. `own_ms` is null where
 * the program recorded no calls by the host's clock, or where the host waits for the device in them. Needs the tables of
 * finding-tables.ts.
 */
export async function hostTimes({ database, source }: TraceScope): Promise<Map<string, HostTime>> {
  const { timing, focus } = source;
  // A range as long as the device's time was not recorded by the host's clock.
  const isClean = timing
    ? `execution_id = ${literal(timing.execution_id)} AND NOT coalesce(warmup, false) AND device_dur_ns IS DISTINCT FROM end_ns - start_ns
       AND coalesce(rank, 0) = ${focus.process_rank ?? focus.rank ?? 0}`
    : 'false';
  const rows = await database.query<{ kind: string } & HostTime>(
    `WITH profiled AS (SELECT kind, stage_id, end_ns, end_ns - start_ns AS call_ns, host_end_ns - start_ns AS step_ns FROM instances WHERE host_end_ns IS NOT NULL),
       waits AS (SELECT p.kind, sum(f.dur_ns) AS step_ns, sum(f.dur_ns) FILTER (f.start_ns < p.end_ns) AS call_ns
         FROM finding_waits f JOIN profiled p ON f.window_id = p.stage_id GROUP BY p.kind),
       clean AS (SELECT kind, median(end_ns - start_ns) AS call_ns FROM stages WHERE ${isClean} GROUP BY kind),
       steps AS (SELECT kind, greatest(0, sum(p.step_ns) - coalesce(any_value(waits.step_ns), 0)) / count(*) / 1e6 AS captured_ms,
           any_value(clean.call_ns) AS clean_ns, median(p.call_ns) AS call_ns, coalesce(any_value(waits.call_ns), 0) / sum(p.call_ns) AS wait_share
         FROM profiled p LEFT JOIN clean USING (kind) LEFT JOIN waits USING (kind) GROUP BY kind)
     SELECT kind, captured_ms, CASE WHEN wait_share <= ${maxWaitShare} AND call_ns > clean_ns THEN captured_ms * clean_ns / call_ns END AS own_ms FROM steps`,
  );
  return new Map(rows.map(({ kind, ...time }) => [kind, time]));
}
