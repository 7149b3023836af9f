import { tables, type TableName } from '../model/tables.js';
import type { SessionDatabase } from '../session/query.js';
import type { Note, TextExport } from './exporter.js';
import { lanePicker } from './lanes.js';
import { columnsAsText, rowsOf } from './pages.js';

interface Spec {
  table: TableName;
  /** SQL of the event's name. */
  name: string;
  /** SQL of the end, ns. */
  end: string;
  /** SQL of what tells tracks apart, as shown. */
  track: string;
}

const ofThread = `concat('process ', pid, CASE WHEN tid <> pid THEN concat(', thread ', tid) ELSE '' END)`;
const ofStream = `concat('device ', device, ', stream ', stream)`;
const dur = 'start_ns + dur_ns';

/** In the order in which the tracks are shown. */
const specs: Spec[] = [
  {
    table: 'stages',
    name: 'coalesce(kind, raw_name)',
    end: 'end_ns',
    track: `concat('stages, process ', pid)`,
  },
  { table: 'ops', name: 'coalesce(name, op_type)', end: dur, track: `concat('operators, ', ${ofThread})` },
  { table: 'gaps', name: 'cause', end: dur, track: `concat('gaps, ', ${ofThread})` },
  { table: 'api_calls', name: 'name', end: dur, track: `concat('API calls, ', ${ofThread})` },
  {
    table: 'kernels',
    name: 'coalesce(short_name, name)',
    end: dur,
    track: `concat('kernels, ', ${ofStream}, ', process ', pid)`,
  },
  { table: 'copies', name: 'kind', end: dur, track: `concat('copies, ', ${ofStream}, ', process ', pid)` },
];

const counters = [
  `SELECT execution_id, t_ns, value, 'value' AS unit,
     concat(scope, ' ', metric, CASE WHEN scope = 'process' THEN concat(', process ', pid) ELSE '' END) AS name
   FROM telemetry WHERE value IS NOT NULL AND isfinite(value) AND t_ns IS NOT NULL ORDER BY execution_id, name, t_ns`,
  `SELECT execution_id, t_ns, bytes AS value, 'bytes' AS unit,
     concat('memory ', kind, CASE WHEN device IS NULL THEN '' ELSE concat(', device ', device) END, ', process ', pid) AS name
   FROM memory WHERE bytes IS NOT NULL AND t_ns IS NOT NULL ORDER BY execution_id, name, t_ns`,
];

/** Shown as the event's place, not among its arguments. */
const notArguments = new Set(['execution_id', 'start_ns', 'end_ns', 'dur_ns', 'name']);

/** ns -> µs with three decimals, digit by digit: a division would round beyond 2^53 / 1000 µs. */
export function microseconds(ns: number): string {
  const size = Math.abs(ns);
  const text = `${Math.floor(size / 1000)}.${String(size % 1000).padStart(3, '0')}`;
  return ns < 0 ? `-${text}` : text;
}

/**
 * Trace Event Format (JSON object form) for Perfetto and chrome://tracing; ts and dur in µs since the session's start.
 * One trace process an execution, one trace thread a track and lane; times of two executions are not comparable.
 */
export const chromeTrace: TextExport = async function* (session, database, note) {
  const processes = new Map<string, number>();
  const { id, manifest, toolVersion } = session;
  yield `{"displayTimeUnit":"ns","otherData":${JSON.stringify({
    session: id,
    title: manifest.title,
    started_at: manifest.started_at,
    written_by: `inferscope ${toolVersion}`,
  })},"traceEvents":[\n`;
  let first = true;
  for await (const event of events()) {
    yield first ? event : `,\n${event}`;
    first = false;
  }
  yield '\n]}\n';

  async function* events(): AsyncGenerator<string> {
    for (const [index, { execution_id, purpose }] of manifest.executions.entries()) {
      processes.set(execution_id, index + 1);
      yield processName(index + 1, execution_id === purpose ? purpose : `${execution_id} (${purpose})`);
    }
    const thread = { next: 1 };
    for (const spec of specs) yield* intervals(database, spec, processOf, thread, note);
    for (const select of counters) {
      for await (const row of rowsOf<CounterRow>(database, select)) {
        const [pid, named] = processOf(row.execution_id);
        if (named) yield named;
        const { name, unit, value, t_ns } = row;
        yield `{"ph":"C","pid":${pid},"tid":0,"ts":${microseconds(t_ns)},"name":${JSON.stringify(name)},"args":{"${unit}":${value}}}`;
      }
    }
  }

  /** Number of an execution's trace process, and its name event when the manifest did not list it. */
  function processOf(executionId: string | null): [number, string | null] {
    const key = executionId ?? '';
    const known = processes.get(key);
    if (known !== undefined) return [known, null];
    processes.set(key, processes.size + 1);
    return [processes.size, processName(processes.size, key)];
  }
};

function processName(pid: number, name: string): string {
  return metadata('process_name', pid, 0, { name });
}

function metadata(kind: string, pid: number, tid: number, args: object): string {
  return `{"ph":"M","pid":${pid},"tid":${tid},"name":"${kind}","args":${JSON.stringify(args)}}`;
}

interface CounterRow {
  execution_id: string | null;
  t_ns: number;
  value: number;
  unit: string;
  name: string;
}

interface IntervalRow extends Record<string, unknown> {
  _execution: string | null;
  _track: string;
  _name: string | null;
  _start: number;
  _end: number;
}

async function* intervals(
  database: SessionDatabase,
  { table, name, end, track }: Spec,
  processOf: (executionId: string | null) => [number, string | null],
  thread: { next: number },
  note: Note,
): AsyncGenerator<string> {
  const columns = Object.keys(tables[table].columns).filter((column) => !notArguments.has(column));
  const usable = `start_ns IS NOT NULL AND ${end} >= start_ns`;
  const [lost] = await database.query<{ n: number }>(
    `SELECT count(*) AS n FROM ${table} WHERE (${usable}) IS NOT TRUE`,
  );
  if (lost && lost.n > 0)
    note(`${lost.n} rows of ${table} have no begin, no end or a negative duration: left out`);
  const rows = rowsOf<IntervalRow>(
    database,
    `SELECT execution_id AS _execution, concat(${track}, CASE WHEN host_count > 1 THEN concat(', ', host) ELSE '' END) AS _track,
       ${name} AS _name, start_ns AS _start, ${end} AS _end, ${columnsAsText(table, columns)}
     FROM ${table}, (SELECT count(DISTINCT host) AS host_count FROM ${table})
     WHERE ${usable} ORDER BY _execution, _track, _start, _end DESC`,
  );
  let current = '';
  let pick = lanePicker();
  let lanes: number[] = [];
  for await (const row of rows) {
    const [pid, named] = processOf(row._execution);
    if (named) yield named;
    const key = JSON.stringify([row._execution, row._track]);
    if (key !== current) {
      current = key;
      pick = lanePicker();
      lanes = [];
    }
    const lane = pick(row._start, row._end);
    if (lanes[lane] === undefined) {
      const tid = thread.next++;
      lanes[lane] = tid;
      yield metadata('thread_name', pid, tid, {
        name: lane === 0 ? row._track : `${row._track} (${lane + 1})`,
      });
      yield metadata('thread_sort_index', pid, tid, { sort_index: tid });
    }
    const times = `"ts":${microseconds(row._start)},"dur":${microseconds(row._end - row._start)}`;
    const about = `"name":${JSON.stringify(row._name ?? table)},"cat":"${table}"`;
    yield `{"ph":"X","pid":${pid},"tid":${lanes[lane]},${times},${about},"args":${argumentsOf(row, columns, table)}}`;
  }
}

/** What the row has besides its place and time; integers beyond 2^53 stay decimal text. */
function argumentsOf(row: IntervalRow, columns: string[], table: TableName): string {
  const types = tables[table].columns as Record<string, { type: string }>;
  const given: Record<string, unknown> = {};
  for (const column of columns) {
    const value = row[column];
    if (value === null || value === undefined) continue;
    const exact = types[column]?.type === 'BIGINT' && Number.isSafeInteger(Number(value));
    given[column] = exact ? Number(value) : value;
  }
  return JSON.stringify(given);
}
