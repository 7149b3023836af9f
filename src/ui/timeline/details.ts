import { gapParts } from '../../model/bars.js';
import { fullDType } from '../../model/dtype.js';
import { tables } from '../../model/tables.js';
import { formatBytes, formatNs, formatPercent, formatTimeTick } from '../../vocabulary/format.js';
import { idleCauseLabel } from '../../vocabulary/idle-causes.js';
import { classLabel } from '../../vocabulary/op-classes.js';
import { explainedKey } from './explained-key.js';
import { lanesIn, placeOf } from './places.js';
import type { EventDetails, Place } from './shown.js';
import { type Timeline, type Track } from './timeline.js';

const hiddenColumns = new Set([
  'execution_id',
  'short_name',
  'capture_id',
  'host',
  'start_ns',
  'end_ns',
  'dur_ns',
  'op_id',
  'parent_op_id',
  'stage_id',
  'stage_kind',
]);

/** Columns shown last; all other columns come before them. */
const lastColumns = ['device', 'stream', 'rank', 'pid', 'tid', 'context', 'correlation', 'attributed_by'];

/** Names of columns that are abbreviated in the tables. */
const columnNames: Readonly<Record<string, string>> = {
  api_start_ns: 'API call starts',
  api_dur_ns: 'API call takes',
};

/** Meaning of columns that a kernel's row has from its operator. */
const joinedColumns: Readonly<Record<string, string>> = {
  roof_share:
    'Share of the roofline: max(FLOP / peak, bytes / bandwidth) of this GEMM, divided by the time of all its kernels.',
  roof_bound: 'What limits the GEMM at the roofline: compute or memory bandwidth.',
};

export type Row = Readonly<Record<string, unknown>>;

/** Reads the table rows of the events of a timeline. */
export interface EventRows {
  /** The row of an event; for a part of a gap, the row of the gap. Times in ns since the session's start. */
  rowOf(track: Track, start: number, end: number): Promise<Row | null>;
  /** The first kernel or copy that an API call launched. */
  launchedBy(call: Row): Promise<{ start_ns: number; dur_ns: number; device: number } | null>;
}

/** @returns null if the timeline has no such event */
export async function eventDetails(
  rows: EventRows,
  timeline: Timeline,
  { lane: number, index }: Place,
): Promise<EventDetails | null> {
  const found = lanesIn(timeline)[number];
  if (!found || index >= found.lane.length) return null;
  const { track, lane } = found;
  const [start, end] = [lane.start[index]!, lane.end[index]!];
  const label = timeline.labels[lane.name[index]!] ?? '';
  const times = { start: start - timeline.from, end: end - timeline.from };
  const row = await rows.rowOf(track, start, end);
  const hasOneRank = timeline.tracks.every(({ rank }) => rank === track.rank);
  const columns = tables[track.table].columns as Record<string, { doc: string }>;
  const facts = Object.entries(row ?? {})
    .filter(([column, value]) => value !== null && !hiddenColumns.has(column) && value !== label)
    .filter(([column]) => column !== 'rank' || !hasOneRank)
    .sort(([a], [b]) => lastColumns.indexOf(a) - lastColumns.indexOf(b))
    .map(([column, value]) => ({
      name: columnNames[column] ?? column.replace(/_(ns|bytes)$/, '').replaceAll('_', ' '),
      text: instants.test(column) ? instantText(Number(value), { start, end }) : textOf(column, value),
      meaning: columns[column]?.doc ?? joinedColumns[column] ?? '',
    }))
    .sort((a, b) => Number(a.text.length > 60) - Number(b.text.length > 60));
  const title = track.table === 'gaps' ? `idle: ${idleCauseLabel(gapParts[lane.class[index]!]!)}` : label;
  return {
    table: track.table,
    title,
    ...times,
    facts,
    explained: row && explainedAs(track.table, gapParts[lane.class[index]!] ?? '', row),
    named: row && namedOn(track.table, row),
    launch: row ? await launchOf(rows, timeline, track.table, row) : null,
  };
}

/**
 * The key of an event's bars and findings, as `eventLinks` has it; null for API calls, which are in gaps of several causes, and for ranges
 * inside a step.
 */
function explainedAs(table: string, cause: string, row: Row): string | null {
  if (table === 'api_calls' || (table === 'stages' && row['stage_kind'] === null)) return null;
  const part = { gaps: cause, copies: row['kind'], stages: '' }[table] ?? row['class'];
  return explainedKey(String(row['stage_kind'] ?? 'outside'), table, String(part));
}

/** The page with all events of the same name. */
function namedOn(table: string, row: Row): EventDetails['named'] {
  const name = row['name'] ?? row['short_name'];
  if (typeof name !== 'string') return null;
  if (table === 'kernels') return { page: 'kernels', name };
  return table === 'ops' ? { page: 'operators', name } : null;
}

function textOf(column: string, value: unknown): string {
  if (column.endsWith('_ns')) return formatNs(Number(value));
  if (column.endsWith('bytes')) return formatBytes(Number(value));
  if (column === 'roof_share') return formatPercent(Number(value));
  if (column === 'dtype') return fullDType(String(value));
  return column === 'class' ? classLabel(String(value)) : String(value);
}

/** Columns of times since the start of the session; other times are durations. */
const instants = /(start|end)_ns$/;

/** A time since the start of the session, with enough digits to see how far it is from the start of the event. */
function instantText(ns: number, { start, end }: { start: number; end: number }): string {
  const shortest = Math.min(end - start, Math.abs(ns - start) || end - start);
  return formatTimeTick(ns, Math.max(1, shortest / 10));
}

/** The API call that launched a kernel or copy, or the first kernel or copy that a call launched. */
async function launchOf(
  rows: EventRows,
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
      launchAt(
        timeline,
        place,
        start,
        end,
        launchText(numberOf('start_ns') - end, table === 'kernels' ? 'kernel' : 'copy'),
      )
    );
  }
  if (table !== 'api_calls') return null;
  const first = await rows.launchedBy(row);
  if (!first) return null;
  const end = first.start_ns + first.dur_ns;
  const place = placeOf(timeline, ({ device }) => device === first.device, first.start_ns, end);
  const wait = first.start_ns - numberOf('start_ns') - numberOf('dur_ns');
  return (
    place &&
    launchAt(timeline, place, first.start_ns, end, `what it launched started ${delayText(wait)} its return`)
  );
}

/** A call can return after its kernel starts: a synchronous copy returns when the copy is done. */
const launchText = (waitNs: number, started: string): string =>
  waitNs < 0
    ? `launched by a call that returned ${formatNs(-waitNs)} after the ${started} started`
    : `launched ${formatNs(waitNs)} before the ${started} started`;

const delayText = (waitNs: number): string =>
  `${formatNs(Math.abs(waitNs))} ${waitNs < 0 ? 'before' : 'after'}`;

const launchAt = (timeline: Timeline, place: Place, start: number, end: number, text: string) => ({
  place,
  start: start - timeline.from,
  end: end - timeline.from,
  text,
});
