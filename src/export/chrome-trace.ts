import { isJob } from '../model/subjects.js';
import { tables, type TableName } from '../model/tables.js';
import type { SessionDatabase } from '../session/query.js';
import type { Note, TextExport } from './exporter.js';
import { lanePicker } from './lanes.js';
import { rowsOf } from './pages.js';

interface Source {
  table: TableName;
  /** SQL of the event's name. */
  name: string;
}

interface Spec {
  /** Tables that share tracks. */
  sources: Source[];
  /** SQL of start and end, ns. */
  start: string;
  end: string;
  /** SQL of the track's name, as shown. */
  track: string;
  /** SQL condition of the rows to export; the others do not count as lost. */
  where?: string;
  /** `s`: arrows start here, `f`: they end here. */
  arrows?: 's' | 'f';
}

const threadTrack = `concat('process ', pid, CASE WHEN tid <> pid THEN concat(', thread ', tid) ELSE '' END)`;
const dur = 'start_ns + dur_ns';
const stageName = `CASE WHEN kind = 'other' THEN coalesce(raw_name, kind) ELSE coalesce(kind, raw_name) END`;

/** In display order of the tracks. */
const specs: Spec[] = [
  {
    sources: [{ table: 'stages', name: stageName }],
    start: 'start_ns',
    end: 'end_ns',
    track: `concat('stages, ', ${threadTrack})`,
  },
  {
    sources: [{ table: 'ops', name: 'coalesce(name, op_type)' }],
    start: 'start_ns',
    end: dur,
    track: `concat('operators, ', ${threadTrack})`,
  },
  {
    sources: [{ table: 'api_calls', name: 'name' }],
    start: 'start_ns',
    end: dur,
    track: `concat('API calls, ', ${threadTrack})`,
    arrows: 's',
  },
  {
    sources: [{ table: 'gaps', name: 'cause' }],
    start: 'start_ns',
    end: dur,
    track: `CASE WHEN device IS NULL THEN concat('gaps, ', ${threadTrack}) ELSE concat('idle, GPU ', device, ', process ', pid) END`,
  },
  {
    sources: [{ table: 'stages', name: stageName }],
    start: 'device_start_ns',
    end: 'device_end_ns',
    track: `concat('stages on GPU ', device, ', process ', pid)`,
    where: 'device_start_ns IS NOT NULL',
  },
  {
    sources: [
      { table: 'kernels', name: 'coalesce(short_name, name)' },
      { table: 'copies', name: 'kind' },
    ],
    start: 'start_ns',
    end: dur,
    track: `concat('GPU ', device, ', stream ', stream, ', process ', pid)`,
    arrows: 'f',
  },
];

const counters = [
  `SELECT execution_id, t_ns, value, 'value' AS unit,
     concat(scope, ' ', metric, CASE WHEN scope = 'process' THEN concat(', process ', pid) ELSE '' END) AS name
   FROM telemetry WHERE value IS NOT NULL AND isfinite(value) AND t_ns IS NOT NULL ORDER BY execution_id, name, t_ns`,
  `SELECT execution_id, t_ns, bytes AS value, 'bytes' AS unit,
     concat('memory ', kind, CASE WHEN device IS NULL THEN '' ELSE concat(', device ', device) END, ', process ', pid) AS name
   FROM memory WHERE bytes IS NOT NULL AND t_ns IS NOT NULL ORDER BY execution_id, name, t_ns`,
];

/** Columns that are the event's place and not its arguments; an arrow shows the API call. */
const notArguments = new Set([
  'execution_id',
  'host',
  'start_ns',
  'end_ns',
  'dur_ns',
  'api_start_ns',
  'api_dur_ns',
  'short_name',
]);

/**
 * One arrow per launch, from its API call to the first activity it started (for a graph the first node), since an arrow of this format has
 * one end. Its id is a row number, because correlation ids are unique only per capture and process.
 */
const flows = 'export_flows';
const flowTable = `CREATE OR REPLACE TEMP TABLE ${flows} AS
  SELECT row_number() OVER () AS flow, * FROM (
    SELECT execution_id, capture_id, pid, correlation, api_start_ns, min(start_ns) AS first_ns,
      arg_min(stream, start_ns) AS first_stream
    FROM (
      SELECT execution_id, capture_id, pid, correlation, api_start_ns, start_ns, stream FROM kernels
      UNION ALL
      SELECT execution_id, capture_id, pid, correlation, api_start_ns, start_ns, stream FROM copies
    ) WHERE correlation IS NOT NULL AND api_start_ns IS NOT NULL AND start_ns IS NOT NULL GROUP BY ALL
  ) SEMI JOIN api_calls USING (execution_id, capture_id, pid, correlation)`;

/** ns -> µs with three decimals, by digits: a division would round above 2^53 / 1000 µs. */
export function microseconds(ns: number): string {
  const size = Math.abs(ns);
  const rest = size % 1000;
  const text = `${(size - rest) / 1000}.${String(rest).padStart(3, '0')}`;
  return ns < 0 ? `-${text}` : text;
}

/**
 * Trace Event Format (JSON object form) for Perfetto and chrome://tracing. One trace process per execution, and in a job one per rank of it;
 * one trace thread per track and lane; ts and dur in µs since the first event of the execution, so that viewers do not start with an empty range. `otherData.zero_ns` is
 * that event's session time. Times of two executions are not comparable.
 */
export const chromeTrace: TextExport = async function* (session, database, note) {
  /** Trace process by execution and rank. */
  const processes = new Map<string, number>();
  const names = new Map<string | null, string>();
  const { id, manifest, toolVersion } = session;
  const hasRanks = isJob(manifest);
  const zeros = await firstEvents(database);
  const zeroOf = (executionId: string | null): number => zeros.get(executionId ?? '') ?? 0;
  yield `{"displayTimeUnit":"ns","otherData":${JSON.stringify({
    session: id,
    title: manifest.title,
    started_at: manifest.started_at,
    written_by: `inferscope ${toolVersion}`,
    zero_ns: Object.fromEntries(zeros),
  })},"traceEvents":[\n`;
  let first = true;
  for await (const event of events()) {
    yield first ? event : `,\n${event}`;
    first = false;
  }
  yield '\n]}\n';

  async function* events(): AsyncGenerator<string> {
    for (const { execution_id, purpose } of manifest.executions) {
      names.set(execution_id, execution_id === purpose ? purpose : `${execution_id} (${purpose})`);
      if (!hasRanks) yield processOf(execution_id, null)[1]!;
    }
    const thread = { next: 1 };
    await database.query(flowTable);
    for (const spec of specs) yield* intervals(database, spec, { processOf, zeroOf, thread, note, hasRanks });
    await database.query(`DROP TABLE ${flows}`);
    for (const select of counters) {
      for await (const row of rowsOf<CounterRow>(database, select)) {
        const [pid, named] = processOf(row.execution_id, null);
        if (named) yield named;
        const { name, unit, value } = row;
        const t_ns = row.t_ns - zeroOf(row.execution_id);
        yield `{"ph":"C","pid":${pid},"tid":0,"ts":${microseconds(t_ns)},"name":${JSON.stringify(name)},"args":{"${unit}":${value}}}`;
      }
    }
  }

  /** Number of a trace process, and the events that name and place it if it is new. */
  function processOf(executionId: string | null, rank: number | null): [number, string | null] {
    const key = `${executionId ?? ''} ${rank ?? ''}`;
    const known = processes.get(key);
    if (known !== undefined) return [known, null];
    const pid = processes.size + 1;
    processes.set(key, pid);
    const name = names.get(executionId) ?? executionId ?? '';
    if (rank === null) return [pid, metadata('process_name', pid, 0, { name })];
    const place = metadata('process_sort_index', pid, 0, { sort_index: rank });
    return [pid, `${metadata('process_name', pid, 0, { name: `rank ${rank}, ${name}` })},\n${place}`];
  }
};

/** Time of the first event of every execution, ns of the session. */
async function firstEvents(database: SessionDatabase): Promise<Map<string, number>> {
  const spans = specs.flatMap(({ sources, start, end, where }) =>
    sources.map(
      ({ table }) =>
        `SELECT execution_id, ${start} AS t FROM ${table} WHERE ${where ?? true} AND ${start} IS NOT NULL AND ${end} >= ${start}`,
    ),
  );
  const samples = counters.map((select) => `SELECT execution_id, t_ns AS t FROM (${select})`);
  const rows = await database.query<{ execution: string; zero: number }>(
    `SELECT coalesce(execution_id, '') AS execution, min(t) AS zero FROM (${[...spans, ...samples].join(' UNION ALL ')}) GROUP BY 1 ORDER BY 1`,
  );
  return new Map(rows.map(({ execution, zero }) => [execution, zero]));
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
  _table: TableName;
  _execution: string | null;
  _rank: number | null;
  _track: string;
  _name: string | null;
  _start: number;
  _end: number;
  _flow: number | null;
}

const argumentsOfTable = (table: TableName): string[] =>
  Object.keys(tables[table].columns).filter((column) => !notArguments.has(column));

/** The rows of one source with the columns of all tables of its spec, in one order. */
function selectOf(
  { table, name }: Source,
  { start, end, track, where, arrows }: Spec,
  all: string[],
  hasRanks: boolean,
): string {
  const tableColumns = new Set(argumentsOfTable(table));
  const columns = all.map((column) =>
    tableColumns.has(column) ? `CAST(${table}."${column}" AS VARCHAR) AS "${column}"` : `NULL AS "${column}"`,
  );
  const place = { s: 'api_start_ns = start_ns', f: 'first_ns = start_ns AND first_stream = stream' };
  const flow = (column: string): string => `(${table}.${column} = ${flows}.${column})`;
  const keys = ['execution_id', 'capture_id', 'pid', 'correlation'].map(flow).join(' AND ');
  const joined = arrows ? `LEFT JOIN ${flows} ON ${keys} AND ${qualified(place[arrows], table)}` : '';
  const inner = `SELECT *, concat(${track}, CASE WHEN host_count > 1 THEN concat(', ', host) ELSE '' END) AS _track,
      ${name} AS _name, ${start} AS _start, ${end} AS _end
    FROM ${table}, (SELECT count(DISTINCT host) AS host_count FROM ${table})
    WHERE ${start} IS NOT NULL AND ${end} >= ${start} AND ${where ?? true}`;
  return `SELECT '${table}' AS _table, ${table}.execution_id AS _execution, ${hasRanks ? `${table}.rank` : 'NULL'} AS _rank, _track, _name, _start, _end,
      ${arrows ? 'flow' : 'NULL'} AS _flow, ${columns.join(', ')}
    FROM (${inner}) ${table} ${joined}`;
}

const qualified = (condition: string, table: TableName): string =>
  condition.replaceAll(/\b(start_ns|stream)\b/g, `${table}.$1`);

interface Axis {
  processOf: (executionId: string | null, rank: number | null) => [number, string | null];
  /** The rows are of several ranks. */
  hasRanks: boolean;
  zeroOf: (executionId: string | null) => number;
  thread: { next: number };
  note: Note;
}

async function* intervals(
  database: SessionDatabase,
  spec: Spec,
  { processOf, zeroOf, thread, note, hasRanks }: Axis,
): AsyncGenerator<string> {
  const { sources, start, end, where } = spec;
  for (const { table } of sources) {
    const [omitted] = await database.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${table} WHERE ${where ?? true} AND (${start} IS NOT NULL AND ${end} >= ${start}) IS NOT TRUE`,
    );
    if (omitted && omitted.n > 0)
      note(`${omitted.n} rows of ${table} have no start, no end or a negative duration: left out`);
  }
  const columns = [...new Set(sources.flatMap(({ table }) => argumentsOfTable(table)))];
  const selects = sources.map((source) => selectOf(source, spec, columns, hasRanks));
  const rows = rowsOf<IntervalRow>(
    database,
    `${selects.join(' UNION ALL ')} ORDER BY _execution, _rank, _track, _start, _end DESC`,
  );
  let current = '';
  let pick = lanePicker();
  let lanes: number[] = [];
  for await (const row of rows) {
    const [pid, named] = processOf(row._execution, row._rank);
    if (named) yield named;
    const key = JSON.stringify([row._execution, row._rank, row._track]);
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
    const place = `"pid":${pid},"tid":${lanes[lane]},"ts":${microseconds(row._start - zeroOf(row._execution))}`;
    const about = `"name":${JSON.stringify(row._name ?? row._table)},"cat":"${row._table}"`;
    yield `{"ph":"X",${place},"dur":${microseconds(row._end - row._start)},${about},"args":${argumentsOf(row, columns)}}`;
    if (row._flow === null) continue;
    // `bp: e` ends the arrow in the enclosing slice instead of the next one.
    const binds = spec.arrows === 'f' ? ',"bp":"e"' : '';
    yield `{"ph":"${spec.arrows}",${place},"id":${row._flow},"name":"launch","cat":"launch"${binds}}`;
  }
}

/** The row's columns without its place and time; integers above 2^53 stay decimal text. */
function argumentsOf(row: IntervalRow, columns: string[]): string {
  const types = tables[row._table].columns as Record<string, { type: string }>;
  const args: Record<string, unknown> = {};
  for (const column of columns) {
    const value = row[column];
    if (value === null || value === undefined || (column === 'name' && value === row._name)) continue;
    args[column] = valueOfType(String(value), types[column]?.type);
  }
  return JSON.stringify(args);
}

function valueOfType(text: string, type: string | undefined): unknown {
  if (type === 'BOOLEAN') return text === 'true';
  if (type === undefined || type === 'VARCHAR') return text;
  const value = Number(text);
  return (type === 'DOUBLE' ? Number.isFinite(value) : Number.isSafeInteger(value)) ? value : text;
}
