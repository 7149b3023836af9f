import type { Idle, PhaseKind } from '../../model/documents/trace.js';
import { placeKey, type TraceScope } from './scope.js';

const waitsShown = 40;
const longestShown = 20;
const callsAsked = 32;

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
  // Even an empty table to join costs as much as the rest.
  const operators = await database.query('SELECT 1 FROM own_ops LIMIT 1');
  const operator =
    operators.length === 0
      ? 'focus_gaps g, (SELECT NULL::VARCHAR AS name) o'
      : 'focus_gaps g LEFT JOIN (SELECT op_id, name FROM own_ops) o ON o.op_id = g.before_op_id';
  // The call is told by the longest gaps of a group: joining all of them to their calls would take longer than all else.
  // Gaps of a device do not overlap: a begin stands for a gap.
  const waits = await database.query<GapRow & { count: number; total_ns: number; longest_ns: number }>(
    `WITH grouped AS (
       SELECT row_number() OVER () AS id, * FROM (
         SELECT g.phase, g.cause, o.name AS operator, count(*) AS count, sum(g.dur_ns)::DOUBLE AS total_ns, max(g.dur_ns) AS longest_ns,
                max_by(g.start_ns, g.dur_ns, ${callsAsked}) AS begins
         FROM ${operator}
         GROUP BY ALL ORDER BY total_ns DESC LIMIT ${waitsShown})),
     asked AS (SELECT id, unnest(begins) AS start_ns FROM grouped WHERE cause IN ('host', 'launch_overhead', 'synchronization')),
     named AS (
       SELECT id, mode(a.name) AS api_name
       FROM asked JOIN own_gaps USING (start_ns) JOIN own_api a USING (pid, correlation) GROUP BY id)
     SELECT phase, cause, operator, api_name, count, total_ns, longest_ns FROM grouped LEFT JOIN named USING (id) ORDER BY total_ns DESC`,
  );
  const longest = await database.query<GapRow & { start_ns: number; dur_ns: number }>(
    `WITH longest AS (SELECT * FROM own_gaps ORDER BY dur_ns DESC, start_ns LIMIT ${longestShown}),
     top AS (SELECT l.*, p.phase FROM longest l JOIN place_of p ON p.stage_id = ${placeKey('l')})
     SELECT g.phase, g.cause, g.start_ns, g.dur_ns, any_value(o.name) AS operator, any_value(a.name) AS api_name
     FROM top g LEFT JOIN own_ops o ON o.op_id = g.before_op_id LEFT JOIN own_api a ON a.correlation = g.correlation AND a.pid = g.pid
     GROUP BY ALL ORDER BY g.dur_ns DESC, g.start_ns`,
  );
  return {
    waits: waits.map((row) => ({ ...row, cause: row.cause ?? 'unattributed' })),
    longest,
  };
}
