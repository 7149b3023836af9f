import { isJob } from '../model/subjects.js';
import type { TextExport } from './exporter.js';
import { makePlacedRows } from '../facts/derived/placed-rows.js';
import { rowsOf } from './pages.js';
import { plural, formatNs } from '../vocabulary/format.js';

const sameProcess = (a: string, b: string): string =>
  `${a}.execution_id = ${b}.execution_id AND ${a}.host IS NOT DISTINCT FROM ${b}.host AND ${a}.pid IS NOT DISTINCT FROM ${b}.pid`;

/** Joins a row's stage: from its own capture if that has stages, else from the record of the same execution. */
const joinStage = (row: string): string => `
  LEFT JOIN (SELECT DISTINCT capture_id FROM stages) stage_captures ON stage_captures.capture_id = ${row}.capture_id
  LEFT JOIN stages s ON s.execution_id = ${row}.execution_id AND s.stage_id = ${row}.stage_id
    AND s.pid IS NOT DISTINCT FROM ${row}.pid AND (stage_captures.capture_id IS NULL OR s.capture_id = stage_captures.capture_id)`;

const onStream = (table: 'kernels' | 'copies', name: string): string => `
  SELECT concat(', device ', device, ', stream ', stream, ', process ', pid) AS place, host, rank, execution_id,
    place AS phase, ${name} AS name, start_ns, start_ns + dur_ns AS end_ns
  FROM placed_${table}`;

/**
 * Two kinds of profiles. Host threads: stages and operators over time; operators are clipped to their stage, because the two may come from
 * different clocks. A stage of a thread without operators is assigned to the process's only thread with operators (the recorder's thread is
 * not the engine's), else it stays. Streams: kernels and copies below their step.
 */
/** @param hasRanks the rows are of several ranks, which the names of profiles then state */
const selectOf = (hasRanks: boolean): string => `
  WITH threads AS (
    SELECT DISTINCT execution_id, host, pid, tid FROM ops
  ), only_thread AS (
    SELECT execution_id, host, pid, min(tid) AS tid FROM threads GROUP BY ALL HAVING count(*) = 1
  ), host_spans AS (
    SELECT s.execution_id, s.host, s.rank, s.pid, CASE WHEN t.execution_id IS NULL AND o.execution_id IS NOT NULL THEN o.tid ELSE s.tid END AS tid,
      0 AS level, CASE WHEN s.kind = 'other' THEN coalesce(s.raw_name, s.kind) ELSE coalesce(s.kind, s.raw_name, 'stage') END AS name,
      s.start_ns, s.end_ns
    FROM stages s LEFT JOIN threads t ON ${sameProcess('s', 't')} AND t.tid IS NOT DISTINCT FROM s.tid
      LEFT JOIN only_thread o ON ${sameProcess('s', 'o')}
    UNION ALL
    SELECT o.execution_id, o.host, o.rank, o.pid, o.tid, 1, coalesce(o.name, o.op_type, 'operator'),
      greatest(o.start_ns, s.start_ns), least(o.start_ns + o.dur_ns, s.end_ns)
    FROM ops o ${joinStage('o')}
  ), device_work AS (
    ${onStream('kernels', `coalesce(short_name, name, 'kernel')`)} UNION ALL ${onStream('copies', `coalesce(kind, 'copy')`)}
  ), spans AS (
    SELECT concat(', process ', pid, CASE WHEN tid <> pid THEN concat(', thread ', tid) ELSE '' END) AS place,
      execution_id, host, rank, 0 AS streams, level, name, start_ns, end_ns FROM host_spans
    UNION ALL SELECT place, execution_id, host, rank, 1, 0, phase, start_ns, end_ns FROM device_work
    UNION ALL SELECT place, execution_id, host, rank, 1, 1, name, start_ns, end_ns FROM device_work
  )
  SELECT concat(execution_id, ${hasRanks ? "', rank ', rank, " : ''}place, CASE WHEN (SELECT count(DISTINCT host) FROM stages) > 1 THEN concat(', ', host) ELSE '' END) AS profile,
    level, name, start_ns, end_ns
  FROM spans WHERE end_ns > start_ns ORDER BY streams, ${hasRanks ? 'rank, ' : ''}profile, start_ns, CASE WHEN streams = 1 THEN end_ns ELSE 0 END, level, end_ns DESC`;

interface SpanRow {
  profile: string;
  level: number;
  name: string;
  start_ns: number;
  end_ns: number;
}

/**
 * speedscope's format (https://www.speedscope.app/file-format-schema.json): one evented profile per thread or stream. An event that would
 * partially overlap the next one is cut at the start of the next one.
 */
export const speedscope: TextExport = async function* (session, database, note) {
  await makePlacedRows(session, database);
  const frames = new Map<string, number>();
  const cut = { events: 0, ns: 0 };
  const open: { frame: number; end_ns: number }[] = [];
  let profile: string | null = null;
  let startValue = 0;
  let time = 0;

  yield `{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":${JSON.stringify(`inferscope ${session.toolVersion}`)},`;
  yield `"name":${JSON.stringify(session.manifest.title)},"activeProfileIndex":0,"profiles":[`;
  for await (const row of rowsOf<SpanRow>(database, selectOf(isJob(session.manifest)))) {
    if (row.profile !== profile) {
      if (profile !== null) yield `${closeUntil(Infinity)}${endOfProfile()},\n`;
      profile = row.profile;
      startValue = row.start_ns;
      yield `{"type":"evented","name":${JSON.stringify(profile)},"unit":"nanoseconds","events":[`;
    }
    const closed = closeUntil(row.start_ns) + cutFor(row);
    time = row.start_ns;
    const frame = frameOf(row.name);
    const comma = time === startValue && open.length === 0 && closed === '' ? '' : ',';
    yield `${closed}${comma}{"type":"O","frame":${frame},"at":${time}}`;
    open.push({ frame, end_ns: row.end_ns });
  }
  if (profile !== null) yield `${closeUntil(Infinity)}${endOfProfile()}`;
  yield `],\n"shared":{"frames":${JSON.stringify([...frames.keys()].map((name) => ({ name })))}}}\n`;
  if (cut.events > 0) {
    note(
      `${plural(cut.events, 'event')} overlapped the next one and were shortened by ${formatNs(cut.ns)} in total`,
    );
  }

  function frameOf(name: string): number {
    const known = frames.get(name);
    if (known !== undefined) return known;
    frames.set(name, frames.size);
    return frames.size - 1;
  }

  /** Close events of all frames that ended by then, innermost first. */
  function closeUntil(time_ns: number): string {
    let text = '';
    while (open.length > 0 && open.at(-1)!.end_ns <= time_ns) text += close(open.at(-1)!.end_ns);
    return text;
  }

  function cutFor(row: SpanRow): string {
    let text = '';
    while (open.length > 0 && open.at(-1)!.end_ns < row.end_ns) {
      cut.events++;
      cut.ns += open.at(-1)!.end_ns - row.start_ns;
      text += close(row.start_ns);
    }
    return text;
  }

  function close(time_ns: number): string {
    time = time_ns;
    return `,{"type":"C","frame":${open.pop()!.frame},"at":${time_ns}}`;
  }

  function endOfProfile(): string {
    return `],"startValue":${startValue},"endValue":${time}}`;
  }
};
