import type { Idle, PhaseKind } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';

const waitsShown = 40;
const longestShown = 20;

interface GapRow {
  phase: PhaseKind;
  cause: string | null;
  operator: string | null;
  api_name: string | null;
}

/**
 * Which gaps of the device cost most: by phase, cause, and the operator or API call that ended them; and the longest
 * single ones. Whole gaps, by the phase of the activity that ends them; a phase's own share of them is in its split.
 */
export async function idle({ database }: TraceScope): Promise<Idle> {
  // A gap that ends with a launch has nothing to tell by the call's name; one of a synchronising call has.
  const waits = await database.query<GapRow & { count: number; total_ns: number; longest_ns: number }>(
    `WITH waiting AS (
       SELECT g.pid, g.correlation, a.name FROM focus_api a JOIN (
         SELECT DISTINCT pid, correlation FROM focus_gaps WHERE cause = 'synchronization') g USING (pid, correlation)),
     named AS (
       SELECT g.phase, g.cause, g.dur_ns, o.name AS operator, w.name AS api_name
       FROM focus_gaps g LEFT JOIN (SELECT op_id, name FROM focus_ops) o ON o.op_id = g.before_op_id
       LEFT JOIN (SELECT pid, correlation, any_value(name) AS name FROM waiting GROUP BY 1, 2) w
         ON w.pid = g.pid AND w.correlation = g.correlation AND g.cause = 'synchronization')
     SELECT phase, cause, operator, api_name, count(*) AS count, sum(dur_ns)::DOUBLE AS total_ns, max(dur_ns) AS longest_ns
     FROM named GROUP BY ALL ORDER BY total_ns DESC LIMIT ${waitsShown}`,
  );
  const longest = await database.query<GapRow & { start_ns: number; dur_ns: number }>(
    `WITH top AS (SELECT pid, phase, cause, start_ns, dur_ns, before_op_id, correlation FROM focus_gaps ORDER BY dur_ns DESC, start_ns LIMIT ${longestShown})
     SELECT g.phase, g.cause, g.start_ns, g.dur_ns, any_value(o.name) AS operator, any_value(a.name) AS api_name
     FROM top g LEFT JOIN focus_ops o ON o.op_id = g.before_op_id LEFT JOIN focus_api a ON a.correlation = g.correlation AND a.pid = g.pid
     GROUP BY ALL ORDER BY g.dur_ns DESC, g.start_ns`,
  );
  return {
    waits: waits.map((row) => ({ ...row, cause: row.cause ?? 'unattributed' })),
    longest,
  };
}
