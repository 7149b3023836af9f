import { tables } from '../../model/tables.js';
import type { SessionDatabase } from '../../session/query.js';
import { formatNs, formatPart } from '../../vocabulary/format.js';
import { idleCauseLabel } from '../../vocabulary/idle-causes.js';
import { lanesIn, placeOf } from './places.js';
import type { EventDetails, Place, Selection } from './shown.js';
import { gapParts, trackClasses, type Timeline } from './tracks.js';

const hidden = new Set([
  'execution_id',
  'capture_id',
  'host',
  'start_ns',
  'end_ns',
  'dur_ns',
  'op_id',
  'parent_op_id',
]);

/** @returns null where the timeline has no such event */
export async function eventDetails(
  database: SessionDatabase,
  timeline: Timeline,
  { lane: number, index }: Place,
): Promise<EventDetails | null> {
  const found = lanesIn(timeline)[number];
  if (!found || index >= found.lane.length) return null;
  const { track, lane } = found;
  const [start, end] = [lane.start[index]!, lane.end[index]!];
  const name = timeline.names[lane.name[index]!] ?? '';
  const times = { start: start - timeline.from, end: end - timeline.from };
  // A part of a gap: its row has all of them.
  const inside =
    track.table === 'gaps'
      ? 'start_ns <= $2 AND start_ns + dur_ns >= $3'
      : `start_ns = $2 AND ${track.table === 'stages' ? 'end_ns' : 'start_ns + dur_ns'} = $3`;
  const keys = (['rank', 'pid', 'tid', 'device', 'stream'] as const).filter((key) => track[key] !== null);
  const [row] = await database.query(
    `SELECT * FROM ${track.table} WHERE execution_id = $1 AND ${inside} ${keys.map((key, i) => `AND ${key} = $${i + 4}`).join(' ')} LIMIT 1`,
    [timeline.execution, start, end, ...keys.map((key) => track[key])],
  );
  const columns = tables[track.table].columns as Record<string, { doc: string }>;
  const facts = Object.entries(row ?? {})
    .filter(([column, value]) => value !== null && !hidden.has(column))
    .map(([column, value]) => ({
      name: column.replace(/_ns$/, '').replaceAll('_', ' '),
      text: column.endsWith('_ns') ? formatNs(timeOf(column, Number(value), timeline.from)) : String(value),
      meaning: columns[column]?.doc ?? '',
    }))
    .sort((a, b) => Number(a.text.length > 60) - Number(b.text.length > 60));
  const title = track.table === 'gaps' ? `idle: ${idleCauseLabel(gapParts[lane.class[index]!]!)}` : name;
  return {
    table: track.table,
    title,
    ...times,
    facts,
    launch: row ? await launchOf(database, timeline, track.table, row) : null,
  };
}

/** Times of day count from the start of the timeline, durations are what they are. */
const timeOf = (column: string, ns: number, from: number): number =>
  /start_ns$|end_ns$/.test(column) ? ns - from : ns;

type Row = Record<string, unknown>;

/** The call of a kernel or copy; the first kernel or copy of a call. */
async function launchOf(
  database: SessionDatabase,
  timeline: Timeline,
  table: string,
  row: Row,
): Promise<EventDetails['launch']> {
  const numberOf = (column: string): number => Number(row[column]);
  if (row['correlation'] === null || row['correlation'] === undefined) return null;
  if (table === 'kernels' || table === 'copies') {
    if (row['api_start_ns'] === null) return null;
    const [start, end] = [numberOf('api_start_ns'), numberOf('api_start_ns') + numberOf('api_dur_ns')];
    const place = placeOf(
      timeline,
      (track) => track.table === 'api_calls' && track.pid === row['pid'],
      start,
      end,
    );
    return (
      place &&
      launched(
        timeline,
        place,
        start,
        end,
        `launched ${formatNs(numberOf('start_ns') - end)} before it started`,
      )
    );
  }
  if (table !== 'api_calls') return null;
  const [first] = await database.query<{ start_ns: number; dur_ns: number; device: number }>(
    `SELECT start_ns, dur_ns, device FROM (SELECT execution_id, capture_id, pid, correlation, start_ns, dur_ns, device FROM kernels
       UNION ALL SELECT execution_id, capture_id, pid, correlation, start_ns, dur_ns, device FROM copies)
     WHERE execution_id = $1 AND capture_id = $2 AND pid IS NOT DISTINCT FROM $3 AND correlation = $4 ORDER BY start_ns LIMIT 1`,
    [timeline.execution, String(row['capture_id']), row['pid'] as number | null, numberOf('correlation')],
  );
  if (!first) return null;
  const end = first.start_ns + first.dur_ns;
  const place = placeOf(timeline, ({ device }) => device === first.device, first.start_ns, end);
  const wait = first.start_ns - numberOf('start_ns') - numberOf('dur_ns');
  return (
    place &&
    launched(
      timeline,
      place,
      first.start_ns,
      end,
      `what it launched started ${formatNs(wait)} after its return`,
    )
  );
}

const launched = (timeline: Timeline, place: Place, start: number, end: number, says: string) => ({
  place,
  start: start - timeline.from,
  end: end - timeline.from,
  says,
});

const namesShown = 50;

/**
 * @param from ns since the start of the timeline
 */
export function selection(timeline: Timeline, from: number, to: number): Selection {
  const [start, end] = [timeline.from + from, timeline.from + to];
  const groups = new Map<
    string,
    {
      table: string;
      device: string;
      classes: Map<string, number>;
      names: Map<string, { id: string; count: number; ns: number }>;
    }
  >();
  for (const { track, lane } of lanesIn(timeline)) {
    if (track.table === 'stages' || track.table === 'ops') continue;
    const device = track.device === null ? '' : ` · GPU ${track.device}`;
    const key = `${track.table}${track.rank ?? ''}${device}`;
    const group = groups.get(key) ?? {
      table: track.table,
      device: (track.rank === null || track.rank === 0 ? '' : ` · rank ${track.rank}`) + device,
      classes: new Map(),
      names: new Map(),
    };
    groups.set(key, group);
    for (let i = lane.after(start); i < lane.length && lane.start[i]! < end; i++) {
      const ns = Math.min(lane.end[i]!, end) - Math.max(lane.start[i]!, start);
      const id = trackClasses[track.table][lane.class[i]!]!;
      group.classes.set(id, (group.classes.get(id) ?? 0) + ns);
      const name = track.table === 'gaps' ? idleCauseLabel(id) : timeline.names[lane.name[i]!]!;
      const sum = group.names.get(name) ?? { id, count: 0, ns: 0 };
      sum.count++;
      sum.ns += ns;
      group.names.set(name, sum);
    }
  }
  const most = <T extends { ns: number }>(of: T[]): T[] => of.sort((a, b) => b.ns - a.ns);
  return {
    groups: [...groups.values()]
      .map(({ table, device, classes, names }) => {
        const total = [...classes.values()].reduce((sum, ns) => sum + ns, 0);
        const share = (ns: number): string => formatPart(ns, to - from);
        return {
          table,
          label: `${groupLabels[table] ?? table}${device}`,
          total_ns: total,
          classes: most([...classes].map(([id, ns]) => ({ id, ns, share: share(ns) }))),
          names: most(
            [...names].map(([name, one]) => ({ name, ...one, text: formatNs(one.ns), share: share(one.ns) })),
          ).slice(0, namesShown),
        };
      })
      .filter(({ total_ns }) => total_ns > 0),
  };
}

const groupLabels: Record<string, string> = {
  kernels: 'Kernels',
  copies: 'Copies',
  gaps: 'Idle time by cause',
  api_calls: 'API calls',
};
