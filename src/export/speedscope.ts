import type { TextExport } from './exporter.js';
import { rowsOf } from './pages.js';

/**
 * Stages and operators of each thread that has operators (of each process that has none), in time. Operators are
 * clipped to their stage: the two come from two clocks, and the trace's error would break the nesting.
 */
const select = `
  WITH threads AS (
    SELECT DISTINCT execution_id, host, pid, tid FROM ops
    UNION
    SELECT DISTINCT s.execution_id, s.host, s.pid, s.tid FROM stages s ANTI JOIN ops o
      ON o.execution_id = s.execution_id AND o.host IS NOT DISTINCT FROM s.host AND o.pid IS NOT DISTINCT FROM s.pid
  ), named AS (
    SELECT t.execution_id, t.host, t.pid, t.tid, 0 AS level, coalesce(s.kind, s.raw_name, 'stage') AS name,
      s.start_ns, s.end_ns
    FROM stages s JOIN threads t
      ON t.execution_id = s.execution_id AND t.host IS NOT DISTINCT FROM s.host AND t.pid IS NOT DISTINCT FROM s.pid
    UNION ALL
    SELECT o.execution_id, o.host, o.pid, o.tid, 1, coalesce(o.name, o.op_type, 'operator'),
      greatest(o.start_ns, s.start_ns), least(o.start_ns + o.dur_ns, s.end_ns)
    FROM ops o LEFT JOIN stages s
      ON s.execution_id = o.execution_id AND s.stage_id = o.stage_id AND s.pid IS NOT DISTINCT FROM o.pid
  )
  SELECT concat(execution_id, ', process ', pid, CASE WHEN tid <> pid THEN concat(', thread ', tid) ELSE '' END,
      CASE WHEN (SELECT count(DISTINCT host) FROM stages) > 1 THEN concat(', ', host) ELSE '' END) AS profile,
    level, name, start_ns, end_ns
  FROM named WHERE end_ns > start_ns ORDER BY profile, start_ns, level, end_ns DESC`;

interface SpanRow {
  profile: string;
  level: number;
  name: string;
  start_ns: number;
  end_ns: number;
}

/**
 * speedscope's own format (https://www.speedscope.app/file-format-schema.json): an evented profile a thread, frames
 * are stages and under them operators. An event that would overlap the next one partially ends where that one begins.
 */
export const speedscope: TextExport = async function* (session, database, note) {
  const frames = new Map<string, number>();
  const cut = { events: 0, ns: 0 };
  const open: { frame: number; end_ns: number }[] = [];
  let profile: string | null = null;
  let startValue = 0;
  let at = 0;

  yield `{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":${JSON.stringify(`inferscope ${session.toolVersion}`)},`;
  yield `"name":${JSON.stringify(session.manifest.title)},"activeProfileIndex":0,"profiles":[`;
  for await (const row of rowsOf<SpanRow>(database, select)) {
    if (row.profile !== profile) {
      if (profile !== null) yield `${closeUntil(Infinity)}${endOfProfile()},\n`;
      profile = row.profile;
      startValue = row.start_ns;
      yield `{"type":"evented","name":${JSON.stringify(profile)},"unit":"nanoseconds","events":[`;
    }
    const closed = closeUntil(row.start_ns) + cutFor(row);
    at = row.start_ns;
    const frame = frameOf(row.name);
    const comma = at === startValue && open.length === 0 && closed === '' ? '' : ',';
    yield `${closed}${comma}{"type":"O","frame":${frame},"at":${at}}`;
    open.push({ frame, end_ns: row.end_ns });
  }
  if (profile !== null) yield `${closeUntil(Infinity)}${endOfProfile()}`;
  yield `],\n"shared":{"frames":${JSON.stringify([...frames.keys()].map((name) => ({ name })))}}}\n`;
  if (cut.events > 0) {
    note(`${cut.events} events were cut by ${(cut.ns / 1000).toFixed(3)} µs in all where the next one began`);
  }

  function frameOf(name: string): number {
    const known = frames.get(name);
    if (known !== undefined) return known;
    frames.set(name, frames.size);
    return frames.size - 1;
  }

  /** Close events of all that ended by then, the innermost first. */
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
    at = time_ns;
    return `,{"type":"C","frame":${open.pop()!.frame},"at":${time_ns}}`;
  }

  function endOfProfile(): string {
    return `],"startValue":${startValue},"endValue":${at}}`;
  }
};
