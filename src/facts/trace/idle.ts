import { gapParts } from '../../model/bars.js';
import type { Idle, PhaseKind } from '../../model/documents/trace.js';
import type { TraceScope } from './scope.js';
import { stepPhase } from './step-places.js';

const maxWaits = 40;
const maxLongest = 20;
const callsPerGroup = 32;

interface GapRow {
  phase: PhaseKind;
  cause: string | null;
  operator: string | null;
}

/** A gap, and the call that launched the activity at its end. */
interface EndedGap {
  start_ns: number;
  pid: number | null;
  correlation: number | null;
}

/** Causes for which an API call gives more detail. */
const causesWithCalls: ReadonlySet<string | null> = new Set(['host', 'launch_overhead', 'synchronization']);

/**
 * The device's gaps: their parts by phase, cause, and the operator or API call that ended the gap, and the longest
 * gaps. The phase is that of the activity at the end of the gap; the split of phases assigns time by window instead.
 */
export async function readIdle({ database }: TraceScope): Promise<Idle> {
  // Joining even an empty table costs as much as the rest of the query.
  const operators = await database.query('SELECT 1 FROM rank_ops LIMIT 1');
  const operator =
    operators.length === 0
      ? 'phase_gaps g, (SELECT NULL::VARCHAR AS name) o'
      : 'phase_gaps g LEFT JOIN (SELECT op_id, name FROM rank_ops) o ON o.op_id = g.before_op_id';
  // The call is that of the longest gaps of a group, because joining all gaps to their calls would be the slowest part.
  // Gaps of a device do not overlap, so a start identifies a gap.
  const sums = gapParts.map((part) => {
    const nonEmpty = `FILTER (${part}_ns > 0)`;
    const starts = causesWithCalls.has(part)
      ? `max_by(start_ns, ${part}_ns, ${callsPerGroup}) ${nonEmpty}`
      : 'NULL';
    return `{cause: '${part}', count: count(*) ${nonEmpty}, total_ns: sum(${part}_ns)::DOUBLE, longest_ns: max(${part}_ns), starts: ${starts}::DOUBLE[]}`;
  });
  const waits = await database.query<
    GapRow & { count: number; total_ns: number; longest_ns: number; starts: readonly number[] | null }
  >(
    `SELECT phase, operator, part.cause, part.count, part.total_ns, part.longest_ns, part.starts FROM (
       SELECT phase, operator, unnest(parts) AS part FROM (
         SELECT ${stepPhase} AS phase, o.name AS operator, [${sums.join(', ')}] AS parts FROM ${operator} GROUP BY 1, 2))
     WHERE part.count > 0 ORDER BY part.total_ns DESC, phase, part.cause, operator LIMIT ${maxWaits}`,
  );
  const parts = gapParts.map((part) => `${part}_ns`).join(', ');
  const longest = await database.query<
    Omit<GapRow, 'cause'> &
      EndedGap & { dur_ns: number } & Record<`${(typeof gapParts)[number]}_ns`, number | null>
  >(
    `SELECT ${stepPhase} AS phase, ${parts}, g.start_ns, g.dur_ns, any_value(o.name) AS operator, g.pid, g.correlation
     FROM phase_gaps g LEFT JOIN rank_ops o ON o.op_id = g.before_op_id
     WHERE g.start_ns IN (SELECT start_ns FROM rank_gaps ORDER BY dur_ns DESC, start_ns LIMIT ${maxLongest}) GROUP BY ALL ORDER BY g.dur_ns DESC, g.start_ns`,
  );
  const callGaps = waits.flatMap(({ cause, starts }) => (causesWithCalls.has(cause) ? (starts ?? []) : []));
  const gapsByStart = await readGapsAt(database, callGaps);
  const names = await readLaunchNames(database, [...gapsByStart.values(), ...longest]);
  const namesOf = (gap: EndedGap | undefined): string[] =>
    gap === undefined ? [] : (names.get(`${gap.pid} ${gap.correlation}`) ?? []);
  return {
    waits: waits.map(({ starts, ...row }) => ({
      phase: row.phase,
      cause: row.cause ?? 'unattributed',
      operator: row.operator,
      api_name: causesWithCalls.has(row.cause)
        ? mostFrequent((starts ?? []).flatMap((start_ns) => namesOf(gapsByStart.get(start_ns))))
        : null,
      count: row.count,
      total_ns: row.total_ns,
      longest_ns: row.longest_ns,
    })),
    longest: longest.map((row) => {
      const gapCauses = gapParts
        .map((id) => ({ id, ns: row[`${id}_ns`] ?? 0 }))
        .filter(({ ns }) => ns > 0)
        .toSorted((a, b) => b.ns - a.ns);
      return {
        phase: row.phase,
        cause: gapCauses[0]?.id ?? null,
        parts: gapCauses,
        start_ns: row.start_ns,
        dur_ns: row.dur_ns,
        operator: row.operator,
        api_name: namesOf(row)[0] ?? null,
      };
    }),
  };
}

/** A list of literal ids lets the reader skip parts of the file; a join reads all of it. */
async function readGapsAt(
  database: TraceScope['database'],
  starts: readonly number[],
): Promise<Map<number, EndedGap>> {
  if (starts.length === 0) return new Map();
  const rows = await database.query<EndedGap>(
    `SELECT start_ns, pid, correlation FROM rank_gaps WHERE start_ns IN (${starts.join(', ')}) AND correlation IS NOT NULL`,
  );
  return new Map(rows.map((row) => [row.start_ns, row]));
}

/**
 * Names of the calls with a gap's correlation id, by "pid correlation". A runtime call and the driver call inside it
 * share the id.
 */
async function readLaunchNames(
  database: TraceScope['database'],
  gaps: readonly EndedGap[],
): Promise<Map<string, string[]>> {
  const ids = new Set(gaps.flatMap(({ correlation }) => (correlation === null ? [] : [correlation])));
  if (ids.size === 0) return new Map();
  const rows = await database.query<{ pid: number | null; correlation: number; name: string }>(
    `SELECT pid, correlation, name FROM rank_api WHERE correlation IN (${[...ids].join(', ')}) AND pid IS NOT NULL AND name IS NOT NULL
     ORDER BY start_ns, name`,
  );
  const names = new Map<string, string[]>();
  for (const { pid, correlation, name } of rows) {
    const key = `${pid} ${correlation}`;
    names.set(key, [...(names.get(key) ?? []), name]);
  }
  return names;
}

/** The first of the most frequent names; null without names. */
function mostFrequent(names: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const [frequent] = [...counts].toSorted((a, b) => b[1] - a[1]);
  return frequent?.[0] ?? null;
}
