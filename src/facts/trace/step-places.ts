import type { TimelineTable } from '../../model/derived-tables.js';
import type { PhaseKind } from '../../model/documents/trace.js';
import { literal, placeKey, type TraceScope } from './scope.js';

/** Tables with a row per activity, each placed in a step by time if its launch was outside of steps. */
interface PlacedTable {
  /** SQL of the time that decides. */
  at: string;
  clock: 'host' | 'device';
}

/** What runs on the device is placed on the windows' clock, what the host did (also calling a copy) on the host's. */
const placedTables = {
  kernels: { at: 'start_ns', clock: 'device' },
  gaps: { at: 'start_ns + dur_ns', clock: 'device' },
  copies: { at: 'coalesce(api_start_ns, start_ns)', clock: 'host' },
  api: { at: 'start_ns', clock: 'host' },
  ops: { at: 'start_ns', clock: 'host' },
} as const satisfies Record<string, PlacedTable>;

const windowsOn = {
  device:
    "SELECT kind, stage_id, start_ns AS from_ns, end_ns AS until_ns FROM windows WHERE kind <> 'sampling'",
  host: "SELECT kind, stage_id, start_ns AS from_ns, host_end_ns AS until_ns FROM instances WHERE kind <> 'sampling'",
};

export const placesNeed: readonly TimelineTable[] = ['stage_places', 'windows', 'instances'];

/** SQL of the phase in which a placed row counts once: its step, which includes sampling. */
export const stepPhase = 'coalesce(step_kind, phase)';

/** SQL of the phases in which a placed row counts: its step, and sampling inside it, which is shown on its own too. */
const countedPhases = `CASE WHEN phase = 'sampling' AND step_kind IS NOT NULL THEN [step_kind, phase] ELSE [${stepPhase}] END`;

/** SQL condition for rows that count in a phase (`countedPhases`, without a list per row). */
export const countsIn = (kind: PhaseKind): string =>
  `(${stepPhase} = ${literal(kind)}${kind === 'sampling' ? ` OR phase = ${literal(kind)}` : ''})`;

/**
 * SQL of a table's placed rows, one for each phase in which they count.
 * @param capture also one with a null phase, for the whole capture
 */
export const byPhaseSql = (table: string, { capture = false } = {}): string =>
  `(SELECT * EXCLUDE (phase), unnest(${capture ? `list_prepend(NULL, ${countedPhases})` : countedPhases}) AS phase FROM ${table})`;

/**
 * SQL of a table's rows with phase, phase_id, step_id and step_kind: the one definition of the step that an activity belongs to. It
 * is the step with the range that launched the activity; outside of all such ranges, the step with the window it is in. Most rows have the
 * first, which a lookup by id finds.
 */
export async function placedSql(
  { database }: TraceScope,
  name: keyof typeof placedTables,
  unmarked: boolean,
): Promise<string> {
  const table = `rank_${name}`;
  if (unmarked)
    return `SELECT *, 'outside' AS phase, NULL::BIGINT AS phase_id, 0::BIGINT AS step_id, 'outside' AS step_kind FROM ${table}`;
  const places = `(SELECT p.stage_id, phase, phase_id, step_id, w.kind AS step_kind FROM stage_places p
      LEFT JOIN windows w ON w.stage_id = p.step_id AND w.kind <> 'sampling')`;
  const placed = `${table} t JOIN ${places} p ON p.stage_id = ${placeKey('t')}`;
  const columns = 't.*, phase, phase_id, step_id, step_kind';
  const others = await database.query(`SELECT 1 FROM ${placed} WHERE step_kind IS NULL LIMIT 1`);
  if (others.length === 0) return `SELECT ${columns} FROM ${placed}`;
  const { at, clock } = placedTables[name];
  const inside = (column: string) => `CASE WHEN ${at} < until_ns THEN near.${column} END`;
  return `SELECT ${columns} FROM ${placed} WHERE step_kind IS NOT NULL
     UNION ALL
     SELECT t.* EXCLUDE (phase, phase_id, step_id, step_kind), coalesce(nullif(phase, 'outside'), ${inside('kind')}, 'outside') AS phase,
       coalesce(phase_id, ${inside('stage_id')}) AS phase_id, coalesce(${inside('stage_id')}, step_id) AS step_id, ${inside('kind')} AS step_kind
     FROM (SELECT ${columns} FROM ${placed} WHERE step_kind IS NULL) t ASOF LEFT JOIN (${windowsOn[clock]}) near ON ${at} >= near.from_ns`;
}
