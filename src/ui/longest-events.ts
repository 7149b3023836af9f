import { gapParts } from '../model/bars.js';
import type { SessionDatabase } from '../session/query.js';

/** Where an event or a stage is. */
export interface Instance {
  execution_id: string;
  start_ns: number;
  end_ns: number;
}

/** An event with the stage that it is in. */
export interface StageEvent extends Instance {
  /** Null for an event of the whole capture. */
  stage_start_ns: number | null;
  stage_end_ns: number | null;
}

/** The rank and device that the explanation is of; events of others would contradict it. */
export type Focus = { rank: number | null; device: number | null } | undefined;

type Table = 'gaps' | 'copies' | 'kernels';

/** The longest event of a table with a name: cause of idle time, direction of copies, class of kernels; any name if it is null. */
export type Longest = (
  table: Table,
  name: string | null,
  stage: { kind: string; execution_id: string },
) => StageEvent | undefined;

type Found = StageEvent & { kind: string; name: string };

/** An event of row `e`, in the stage of row `p`. */
const eventIn = (marked: boolean): string => `{'start_ns': e.start_ns, 'end_ns': e.start_ns + e.dur_ns,
  'stage_start_ns': ${marked ? 'p.start_ns' : 'NULL::BIGINT'}, 'stage_end_ns': ${marked ? 'p.end_ns' : 'NULL::BIGINT'}}`;

/** The longest events of all stages at once; an `outside` stage is the whole capture. */
export async function longestEvents(
  database: SessionDatabase,
  focus: Focus,
  stages: readonly { kind: string }[],
): Promise<Longest> {
  const isUnmarked = ({ kind }: { kind: string }): boolean => kind === 'outside';
  const found = [
    ...(stages.some((stage) => !isUnmarked(stage)) ? await eventsIn(database, focus, true) : []),
    ...(stages.some(isUnmarked) ? await eventsIn(database, focus, false) : []),
  ];
  return (table, name, { kind, execution_id: execution }) =>
    found
      .filter(
        (event) =>
          event.table === table &&
          event.kind === kind &&
          event.execution_id === execution &&
          (name === null || event.name === name),
      )
      .toSorted((a, b) => b.end_ns - b.start_ns - (a.end_ns - a.start_ns))[0];
}

async function eventsIn(database: SessionDatabase, focus: Focus, marked: boolean) {
  const key = marked ? 'e.execution_id, p.kind AS kind' : "e.execution_id, 'outside' AS kind";
  const event = eventIn(marked);
  const from = (table: Table) =>
    `FROM ${table} e ${
      marked
        ? `JOIN stages s USING (execution_id, capture_id, stage_id)
           JOIN stages p ON p.execution_id = s.execution_id AND p.capture_id = s.capture_id AND p.stage_id = s.phase_id`
        : ''
    } WHERE ($1::INTEGER IS NULL OR e.rank = $1) AND ($2::INTEGER IS NULL OR e.device = $2)
      ${marked ? 'AND NOT coalesce(p.warmup, false)' : ''} GROUP BY ALL`;
  const gaps = gapParts.map((part) => `arg_max(${event}, e.${part}_ns) FILTER (e.${part}_ns > 0) AS ${part}`);
  return database.query<Found & { table: Table }>(
    `WITH kernel_events AS (SELECT ${key}, e.class AS name, arg_max(${event}, e.dur_ns) AS event ${from('kernels')}),
     copy_events AS (SELECT ${key}, e.kind AS name, arg_max(${event}, e.dur_ns) AS event ${from('copies')}),
     gap_events AS (SELECT ${key}, ${gaps.join(', ')} ${from('gaps')})
     SELECT 'kernels' AS table, execution_id, kind, name, event.* FROM kernel_events
     UNION ALL SELECT 'copies', execution_id, kind, name, event.* FROM copy_events
     UNION ALL SELECT 'gaps', execution_id, kind, name, event.* FROM (UNPIVOT gap_events ON ${gapParts.join(', ')} INTO NAME name VALUE event)`,
    [focus?.rank ?? null, focus?.device ?? null],
  );
}

/** The longest operator of a class in stages of a kind. */
export type LongestOperator = (kind: string, opClass: string) => StageEvent | undefined;

/**
 * The longest operator of a class in any execution: the embedded engine times its stages without operators and profiles operators in another
 * execution.
 */
export async function longestOperators(database: SessionDatabase): Promise<LongestOperator> {
  const found = await database.query<Found>(
    `WITH found AS (SELECT p.kind, e.class AS name, max(coalesce(e.self_dur_ns, e.dur_ns)) AS own_ns,
         e.execution_id, arg_max(${eventIn(true)}, coalesce(e.self_dur_ns, e.dur_ns)) AS event
       FROM ops e JOIN stages s ON s.execution_id = e.execution_id AND s.stage_id = e.stage_id
         AND (s.capture_id = e.capture_id OR e.capture_id NOT IN (SELECT capture_id FROM stages))
       JOIN stages p ON p.execution_id = s.execution_id AND p.capture_id = s.capture_id AND p.stage_id = s.phase_id
       WHERE NOT coalesce(p.warmup, false) GROUP BY ALL)
     SELECT execution_id, kind, name, event.* FROM found ORDER BY own_ns DESC`,
  );
  return (kind, opClass) => found.find((event) => event.kind === kind && event.name === opClass);
}

/** The slowest instance of a kind of stage, in one execution or, if it is null, in those with operators. */
export async function slowestStages(
  database: SessionDatabase,
): Promise<(kind: string, execution: string | null) => Instance | undefined> {
  const found = await database.query<Instance & { kind: string; operators: boolean }>(
    `WITH found AS (SELECT execution_id, kind, max(end_ns - start_ns) AS dur_ns, arg_max({'start_ns': start_ns, 'end_ns': end_ns}, end_ns - start_ns) AS event
       FROM stages WHERE stage_id = phase_id AND NOT coalesce(warmup, false) GROUP BY ALL)
     SELECT execution_id, kind, event.*, execution_id IN (SELECT execution_id FROM ops) AS operators FROM found ORDER BY dur_ns DESC`,
  );
  return (kind, execution) =>
    found.find(
      (stage) =>
        stage.kind === kind && (execution === null ? stage.operators : stage.execution_id === execution),
    );
}
