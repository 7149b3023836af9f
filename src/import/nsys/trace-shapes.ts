import type { Workbench } from '../../model/workbench.js';
import { traceTables, type TraceTable } from '../trace-tables.js';
import type { RankSql } from './rank-sql.js';
import { type EventKind, eventKinds, type NsysTables } from './tables.js';
import { eventTexts, type TextsSql } from './trace-texts.js';

/** Columns of the trace tables that come from a shape, in nsys's columns and the texts of trace-texts.ts. */
const device = { device: 'deviceId', context: 'contextId', stream: 'streamId' };
export const fromShape: Record<EventKind, { table: TraceTable; columns: Record<string, string> }> = {
  kernel: {
    table: 'trace_kernels',
    columns: {
      ...device,
      registers: 'registersPerThread',
      shared_mem_bytes: 'coalesce(staticSharedMemory, 0) + coalesce(dynamicSharedMemory, 0)',
      graph_id: 'graphId',
      graph_node: 'graphNodeId',
      opaque_graph: '0',
    },
  },
  graph: { table: 'trace_kernels', columns: { ...device, graph_id: 'graphId', opaque_graph: '1' } },
  memcpy: { table: 'trace_copies', columns: { ...device, graph_node: 'graphNodeId' } },
  memset: { table: 'trace_copies', columns: { ...device, graph_node: 'graphNodeId' } },
  api: { table: 'trace_api', columns: { tid: 'tid' } },
};

const textColumns = [
  'name',
  'short_name',
  'grid',
  'block',
  'kind_text',
  'src_kind',
  'dst_kind',
  'api',
] as const;

/**
 * nsys_texts (event_kind, shape, and the text columns of its trace table) for createShapes, and trace_names of these and of
 * the texts of `ranges`.
 * @param ranges a table with a column text
 */
export async function createTexts(workbench: Workbench, tables: NsysTables, ranges: string): Promise<void> {
  const selects = eventTexts(tables).map(({ kind, from, columns }: TextsSql) => {
    const list = textColumns.map((column) => `${columns[column] ?? 'NULL'}::VARCHAR AS ${column}`);
    return `SELECT '${kind}' AS event_kind, CAST(shape AS UBIGINT) AS shape, ${list.join(', ')} FROM ${from}`;
  });
  const emptySelect = `SELECT ''::VARCHAR AS event_kind, 0::UBIGINT AS shape, ${textColumns.map((c) => `''::VARCHAR AS ${c}`).join(', ')} WHERE false`;
  await workbench.run(`CREATE TABLE nsys_texts AS ${[emptySelect, ...selects].join(' UNION ALL ')}`);
  const all = textColumns.map((column) => `SELECT ${column} AS text FROM nsys_texts`);
  await workbench.run(
    `CREATE TABLE trace_names AS SELECT row_number() OVER () - 1 AS code, text
     FROM (SELECT text FROM ${ranges} UNION ${all.join(' UNION ')}) WHERE text IS NOT NULL`,
  );
}

/** Like createTexts, plus trace_ranges. */
export async function createNames(workbench: Workbench, tables: NsysTables, rank: string): Promise<void> {
  await createTexts(workbench, tables, 'trace_ranges_text');
  await workbench.run(`CREATE TABLE trace_ranges AS
    SELECT r.* EXCLUDE (text), CAST(${rank} AS DOUBLE) AS rank, CAST(n.code AS DOUBLE) AS name
    FROM trace_ranges_text r LEFT JOIN trace_names n USING (text) ORDER BY start_ns, end_ns DESC`);
  await workbench.run('DROP TABLE trace_ranges_text');
}

/** SQL for the process of activities without one: the process that made all API calls, if there is exactly one. */
async function findOnlyProcess(workbench: Workbench, { api }: NsysTables['shapes']): Promise<string> {
  if (!api) return 'NULL';
  const processes = await workbench.query<{ pid: number }>(
    `SELECT DISTINCT CAST(pid AS BIGINT) AS pid FROM ${api} WHERE pid IS NOT NULL LIMIT 2`,
  );
  return processes.length === 1 ? String(processes[0]!.pid) : 'NULL';
}

/**
 * nsys_<kind>_trace: per shape, the values of its rows in the trace table.
 * @returns the columns other than `shape`
 */
export async function createWideShapes(
  workbench: Workbench,
  { shapes }: NsysTables,
  kind: EventKind,
  rank: RankSql,
): Promise<string[]> {
  const { table, columns } = fromShape[kind];
  const textColumnOf = { name: 'name', short_name: 'short_name', grid: 'grid', block: 'block' } as Record<
    string,
    string
  >;
  Object.assign(textColumnOf, { kind: 'kind_text', src_kind: 'src_kind', dst_kind: 'dst_kind', api: 'api' });
  const onlyPid = await findOnlyProcess(workbench, shapes);
  const joins: string[] = [];
  const columnsSql = traceTables[table].flatMap((column) => {
    if (['start_ns', 'dur_ns', 'correlation', 'bytes'].includes(column)) return [];
    if (column === 'pid') return [`CAST(coalesce(pid, ${onlyPid}) AS BIGINT) AS pid`];
    if (column === 'rank') return [`${'device' in columns ? rank.ofDevice : rank.ofProcess} AS rank`];
    if (columns[column]) return [`CAST(${columns[column]} AS BIGINT) AS ${column}`];
    const text = textColumnOf[column];
    if (!text) return [`NULL::BIGINT AS ${column}`];
    joins.push(`LEFT JOIN trace_names AS names_${column} ON names_${column}.text = t.${text}`);
    return [`names_${column}.code AS ${column}`];
  });
  await workbench.run(`CREATE TABLE nsys_${kind}_trace AS
    SELECT shapes.shape, ${columnsSql.join(', ')} FROM ${shapes[kind]} shapes
    JOIN nsys_texts t ON t.event_kind = '${kind}' AND t.shape = CAST(shapes.shape AS UBIGINT) ${joins.join(' ')}`);
  return columnsSql.map((column) => /(\w+)$/.exec(column)![1]!);
}

/** Like createWideShapes, with narrow types for all rows of the kind. */
export async function createShapes(
  workbench: Workbench,
  tables: NsysTables,
  kind: EventKind,
  rank: RankSql,
): Promise<void> {
  const names = await createWideShapes(workbench, tables, kind, rank);
  const [range] = await workbench.query<Record<string, number | null>>(
    `SELECT ${names.map((name) => `max(abs(${name}))::DOUBLE AS ${name}`).join(', ')} FROM nsys_${kind}_trace`,
  );
  for (const name of names) {
    const max = range![name] ?? 0;
    const type = max < 2 ** 7 ? 'TINYINT' : max < 2 ** 15 ? 'SMALLINT' : max < 2 ** 31 ? 'INTEGER' : null;
    if (type) await workbench.run(`ALTER TABLE nsys_${kind}_trace ALTER ${name} TYPE ${type}`);
  }
}

/** Drops nsys_texts and the tables nsys_<kind>_trace. */
export async function dropShapes(workbench: Workbench): Promise<void> {
  for (const kind of eventKinds) await workbench.run(`DROP TABLE IF EXISTS nsys_${kind}_trace`);
  await workbench.run('DROP TABLE nsys_texts');
}
