import { countedKindSql, stageLabelSql } from '../../facts/trace/timeline.js';
import { gapParts } from '../../model/bars.js';
import { opClasses } from '../../model/classes.js';
import { stageKinds } from '../../model/record.js';
import type { SessionDatabase } from '../../session/query.js';
import { kernelLabels } from '../../vocabulary/kernel-label.js';
import { Lane, lanesOf } from './lane.js';
import { type Timeline, type Track, type TrackTable } from './timeline.js';

const apiKinds = ['launch', 'synchronization', 'copy', 'allocation', 'other'] as const;

/** Ids of the classes of a track's events, by number. */
export const trackClasses: Readonly<Record<TrackTable, readonly string[]>> = {
  stages: stageKinds,
  ops: opClasses,
  api_calls: apiKinds,
  gaps: gapParts,
  kernels: opClasses,
  copies: ['copy'],
};

const numbered = (ids: readonly string[], column: string): string =>
  `coalesce(list_position([${ids.map((id) => `'${id}'`).join(', ')}], ${column}), ${ids.length}) - 1`;

/** In cudaStreamWaitEvent and its like a stream waits, not the host. */
const apiKind = `CASE WHEN name ILIKE '%launch%' THEN 'launch' WHEN name ILIKE '%synchronize%' THEN 'synchronization'
  WHEN name ILIKE '%mem%cpy%' OR name ILIKE '%memset%' THEN 'copy' WHEN name ILIKE '%alloc%' OR name ILIKE '%free%' THEN 'allocation' ELSE 'other' END`;

interface Source {
  table: TrackTable;
  /** Columns that distinguish the tracks of a table. */
  key: readonly ('rank' | 'host' | 'pid' | 'tid' | 'device' | 'stream')[];
  /** SQL of an event's name and of its class number. */
  name: string;
  class: string;
  end: string;
  /** What pages show instead of the names, from the names and a further SQL text of each. */
  label?: { from: string; of: (names: readonly NamedEvent[]) => string[] };
}

interface NamedEvent {
  event_name: string;
  event_text: string | null;
}

const threadKey = ['rank', 'host', 'pid', 'tid'] as const;
const streamKey = ['rank', 'host', 'device', 'stream'] as const;
const end = 'start_ns + dur_ns';

const sources: readonly Source[] = [
  {
    table: 'stages',
    key: threadKey,
    name: `coalesce(raw_name, ${stageLabelSql})`,
    // Ranges inside a step of a warm-up keep their kind.
    class: numbered(
      stageKinds,
      `CASE WHEN stage_id = phase_id THEN ${countedKindSql('stages')} ELSE kind END`,
    ),
    end: 'end_ns',
    label: {
      from: stageLabelSql,
      of: (names) => names.map(({ event_name, event_text }) => event_text ?? event_name),
    },
  },
  { table: 'ops', key: threadKey, name: 'name', class: numbered(opClasses, 'class'), end },
  { table: 'api_calls', key: threadKey, name: 'name', class: numbered(apiKinds, apiKind), end },
  { table: 'gaps', key: ['rank', 'host', 'device'], name: "''", class: '0', end },
  {
    table: 'kernels',
    key: streamKey,
    name: 'coalesce(name, short_name)',
    class: numbered(opClasses, 'class'),
    end,
    label: {
      from: 'tile',
      of: (names) => [
        ...kernelLabels(
          names.map(({ event_name, event_text }) => ({ name: event_name, tile: event_text })),
        ).values(),
      ],
    },
  },
  { table: 'copies', key: streamKey, name: 'kind', class: '0', end },
];

/** Tables in the order of loading: what a page shows first is loaded first. */
const readOrder = ['kernels', 'copies', 'stages', 'gaps', 'api_calls', 'ops'] as const;

/** A timeline without events yet. Its bounds are those of the events, or of the samples if there are no events. */
export async function startTimeline(database: SessionDatabase, execution: string): Promise<Timeline> {
  const bounds = sources.map(
    ({ table, end }) =>
      `SELECT min(start_ns) AS start_ns, max(${end}) AS end_ns FROM ${table} WHERE execution_id = $1`,
  );
  const samples = 'SELECT min(t_ns) AS start_ns, max(t_ns) AS end_ns FROM telemetry WHERE execution_id = $1';
  const [found] = await database.query<{ start_ns: number | null; end_ns: number | null }>(
    `SELECT coalesce(e.start_ns, s.start_ns) AS start_ns, coalesce(e.end_ns, s.end_ns) AS end_ns
     FROM (SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM (${bounds.join(' UNION ALL ')})) e, (${samples}) s`,
    [execution],
  );
  const [from, to] = [found?.start_ns ?? 0, found?.end_ns ?? 0];
  return { execution, from, to, tracks: [], names: [], labels: [], reading: readOrder[0] };
}

/** Reads the events of an execution into its timeline, table by table. */
export async function readTimeline(database: SessionDatabase, timeline: Timeline): Promise<void> {
  for (const table of readOrder) {
    timeline.reading = table;
    const source = sources.find((candidate) => candidate.table === table)!;
    timeline.tracks.push(...(await readTracks(database, source, timeline)));
  }
  timeline.reading = null;
}

async function readTracks(
  database: SessionDatabase,
  { table, key, name, class: kind, end, label }: Source,
  { execution, names, labels }: Timeline,
): Promise<Track[]> {
  const parts = table === 'gaps' ? gapParts.map((part) => `${part}_ns`) : [];
  const rows = `SELECT ${key.join(', ')}, coalesce(${name}, '') AS event_name, ${label?.from ?? 'NULL'} AS event_text, ${kind} AS event_class, start_ns, ${end} AS event_end_ns
    ${parts.map((part) => `, ${part}`).join('')} FROM ${table} WHERE execution_id = '${execution.replaceAll("'", "''")}'`;
  await database.query(
    `CREATE OR REPLACE TEMP TABLE ui_tracks AS SELECT row_number() OVER () - 1 AS track, * FROM (SELECT ${key.join(', ')}, count(*) AS events FROM (${rows}) GROUP BY ${key.join(', ')} ORDER BY ALL)`,
  );
  await database.query(
    `CREATE OR REPLACE TEMP TABLE ui_names AS SELECT row_number() OVER () - 1 + ${names.length} AS name, * FROM (SELECT event_name, any_value(event_text) AS event_text FROM (${rows}) GROUP BY 1 ORDER BY 1)`,
  );
  const found = await database.query<Partial<Track>>(
    'SELECT * EXCLUDE (track, events) FROM ui_tracks ORDER BY track',
  );
  const counts = await database.query<{ events: number }>('SELECT events FROM ui_tracks ORDER BY track');
  const tracks = found.map((row): Track => ({
    ...noKey,
    ...row,
    table,
    classes: new Set(),
    lanes: [],
  }));
  const named = await database.query<NamedEvent>('SELECT event_name, event_text FROM ui_names ORDER BY name');
  const texts = label?.of(named);
  for (const [index, { event_name }] of named.entries()) {
    names.push(event_name);
    labels.push(texts?.[index] ?? event_name);
  }
  const same = key.map((column) => `r.${column} IS NOT DISTINCT FROM t.${column}`).join(' AND ');
  const joined = tracks.length > 1 ? `JOIN ui_tracks t ON ${same}` : 'CROSS JOIN ui_tracks t';
  const batches = database.scan(
    `SELECT t.track, n.name, r.event_class, r.start_ns, r.event_end_ns ${parts.map((part) => `, r.${part}`).join('')}
     FROM (${rows}) r ${joined} JOIN ui_names n ON n.event_name = r.event_name`,
  );
  const events = counts.map(({ events: count }) => new Lane(count));
  for await (const { rows: count, columns } of batches) {
    const { track, name: names, event_class: classes, start_ns: starts, event_end_ns: ends } = columns;
    const split = parts.map((part) => columns[part]!);
    for (let i = 0; i < count; i++) {
      const into = events[track![i]!]!;
      if (split.length === 0) into.push(starts![i]!, ends![i]!, classes![i]!, names![i]!);
      else pushParts(into, starts![i]!, split, i, names![i]!);
    }
  }
  for (const [i, track] of tracks.entries()) {
    track.lanes = lanesOf(events[i]!);
    for (const { class: classes, length } of track.lanes)
      for (let index = 0; index < length; index++) track.classes.add(classes[index]!);
  }
  return tracks;
}

const noKey = { rank: null, host: null, pid: null, tid: null, device: null, stream: null };

/** Adds the parts of a gap one after the other, in the order of their columns. */
function pushParts(
  events: Lane,
  start: number,
  parts: readonly Float64Array[],
  row: number,
  name: number,
): void {
  let timeNs = start;
  for (let kind = 0; kind < parts.length; kind++) {
    const dur = parts[kind]![row]!;
    if (!(dur > 0)) continue;
    events.push(timeNs, timeNs + dur, kind, name);
    timeNs += dur;
  }
}
