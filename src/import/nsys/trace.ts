import type { Issue } from '../../model/document.js';
import type { Workbench } from '../../model/workbench.js';
import { traceTables, type TraceTable } from '../trace-tables.js';
import { createRanges } from './trace-ranges.js';
import { eventTexts, type Texts } from './trace-texts.js';
import type { Kind, NsysTables } from './tables.js';

/** Times of a trace are exact as doubles only to here; more is no time of a capture. */
const latest = 2 ** 53;
const sound = `"end" >= start AND start > -${latest} AND "end" < ${latest}`;

/** Columns of the trace tables that come from a shape, in nsys's columns and the texts of trace-texts.ts. */
const device = { device: 'deviceId', context: 'contextId', stream: 'streamId' };
const fromShape: Record<Exclude<Kind, 'nvtx'>, { table: TraceTable; columns: Record<string, string> }> = {
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
const shapeKinds = Object.keys(fromShape) as Exclude<Kind, 'nvtx'>[];

/**
 * Makes the trace tables from nsys's own, which are used up. What rows have in common is put together once for each
 * shape, and each column gets the narrowest type that holds it: a row of the largest tables takes a third of the
 * memory of one of doubles.
 * @param offset_ns added to every time
 * @returns what was left out or is missing, counted
 */
export async function createTrace(
  workbench: Workbench,
  tables: NsysTables,
  offset_ns: number,
): Promise<Issue[]> {
  const issues = [...(await unsoundRows(workbench, tables)), ...(await unnamedRows(workbench, tables))];
  const rank = await rankOf(workbench, tables);
  await createRanges(workbench, tables, offset_ns, rank);
  await createNames(workbench, tables);
  for (const table of ['trace_kernels', 'trace_copies', 'trace_api'] as const) {
    const parts: string[] = [];
    for (const kind of shapeKinds) {
      if (fromShape[kind].table !== table || !tables.shapes[kind]) continue;
      await createShapes(workbench, tables, kind, rank);
      const each = traceTables[table].map((column) => {
        if (column === 'start_ns') return `CAST(start + ${offset_ns} AS BIGINT) AS start_ns`;
        if (column === 'dur_ns') return 'CAST("end" - start AS BIGINT) AS dur_ns';
        if (column === 'correlation') return `CAST(correlationId AS BIGINT) AS correlation`;
        if (column === 'bytes') return 'CAST(bytes AS BIGINT) AS bytes';
        return `s.${column}`;
      });
      parts.push(
        `SELECT ${each.join(', ')} FROM ${tables.rows[kind]} JOIN nsys_${kind}_trace s USING (shape) WHERE ${sound}`,
      );
    }
    const none = `SELECT ${traceTables[table].map((column) => `NULL::DOUBLE AS ${column}`).join(', ')} WHERE false`;
    await workbench.run(`CREATE TABLE ${table} AS ${parts.join(' UNION ALL ') || none}`);
  }
  const ops = traceTables.trace_ops.map((column) => `${column} DOUBLE`);
  await workbench.run(`CREATE TABLE trace_ops (${ops.join(', ')})`);
  for (const kind of shapeKinds) await workbench.run(`DROP TABLE IF EXISTS nsys_${kind}_trace`);
  await workbench.run('DROP TABLE nsys_texts');
  await tables.drop();
  return issues;
}

/** trace_names, and nsys_texts (kind, shape, and the text columns of its trace table) for createShapes. */
async function createNames(workbench: Workbench, tables: NsysTables): Promise<void> {
  const texts = eventTexts(tables);
  const columns = [
    'name',
    'short_name',
    'grid',
    'block',
    'kind_text',
    'src_kind',
    'dst_kind',
    'api',
  ] as const;
  const selects = texts.map(({ kind, from, columns: given }: Texts) => {
    const list = columns.map((column) => `${given[column] ?? 'NULL'}::VARCHAR AS ${column}`);
    return `SELECT '${kind}' AS of, CAST(shape AS UBIGINT) AS shape, ${list.join(', ')} FROM ${from}`;
  });
  const none = `SELECT ''::VARCHAR AS of, 0::UBIGINT AS shape, ${columns.map((c) => `''::VARCHAR AS ${c}`).join(', ')} WHERE false`;
  await workbench.run(`CREATE TABLE nsys_texts AS ${[none, ...selects].join(' UNION ALL ')}`);
  const all = columns.map((column) => `SELECT ${column} AS text FROM nsys_texts`);
  await workbench.run(
    `CREATE TABLE trace_names AS SELECT row_number() OVER () - 1 AS code, text
     FROM (SELECT text FROM trace_ranges_text UNION ${all.join(' UNION ')}) WHERE text IS NOT NULL`,
  );
  await workbench.run(`CREATE TABLE trace_ranges AS
    SELECT r.* EXCLUDE (text), CAST(n.code AS DOUBLE) AS name
    FROM trace_ranges_text r LEFT JOIN trace_names n USING (text) ORDER BY start_ns, end_ns DESC`);
  await workbench.run('DROP TABLE trace_ranges_text');
}

/** nsys_<kind>_trace: for each shape what its rows have in the trace table, in narrow types. */
async function createShapes(
  workbench: Workbench,
  { shapes }: NsysTables,
  kind: Exclude<Kind, 'nvtx'>,
  rank: string,
): Promise<void> {
  const { table, columns } = fromShape[kind];
  const codes = { name: 'name', short_name: 'short_name', grid: 'grid', block: 'block' } as Record<
    string,
    string
  >;
  Object.assign(codes, { kind: 'kind_text', src_kind: 'src_kind', dst_kind: 'dst_kind', api: 'api' });
  const joins: string[] = [];
  const given = traceTables[table].flatMap((column) => {
    if (['start_ns', 'dur_ns', 'correlation', 'bytes'].includes(column)) return [];
    if (column === 'pid') return ['CAST(pid AS BIGINT) AS pid'];
    if (column === 'rank') return [`${rank} AS rank`];
    if (columns[column]) return [`CAST(${columns[column]} AS BIGINT) AS ${column}`];
    const text = codes[column];
    if (!text) return [`NULL::BIGINT AS ${column}`];
    joins.push(`LEFT JOIN trace_names AS names_${column} ON names_${column}.text = t.${text}`);
    return [`names_${column}.code AS ${column}`];
  });
  await workbench.run(`CREATE TABLE nsys_${kind}_trace AS
    SELECT u.shape, ${given.join(', ')} FROM ${shapes[kind]} u
    JOIN nsys_texts t ON t.of = '${kind}' AND t.shape = CAST(u.shape AS UBIGINT) ${joins.join(' ')}`);
  const names = given.map((column) => /(\w+)$/.exec(column)![1]!);
  const [range] = await workbench.query<Record<string, number | null>>(
    `SELECT ${names.map((name) => `max(abs(${name}))::DOUBLE AS ${name}`).join(', ')} FROM nsys_${kind}_trace`,
  );
  for (const name of names) {
    const most = range![name] ?? 0;
    const type = most < 2 ** 7 ? 'TINYINT' : most < 2 ** 15 ? 'SMALLINT' : most < 2 ** 31 ? 'INTEGER' : null;
    if (type) await workbench.run(`ALTER TABLE nsys_${kind}_trace ALTER ${name} TYPE ${type}`);
  }
}

/** With one process its rank is 0; of several nsys knows no order. */
async function rankOf(workbench: Workbench, { shapes }: NsysTables): Promise<string> {
  const parts = [shapes.kernel, shapes.graph, shapes.memcpy, shapes.memset].filter((part) => part !== null);
  if (parts.length === 0) return '0';
  const [row] = await workbench.query<{ n: number }>(
    `SELECT count(DISTINCT pid) AS n FROM (${parts.map((part) => `SELECT pid FROM ${part}`).join(' UNION ALL ')})`,
  );
  return row!.n > 1 ? 'NULL::BIGINT' : '0';
}

async function unsoundRows(workbench: Workbench, { rows }: NsysTables): Promise<Issue[]> {
  let count = 0;
  for (const [kind, part] of Object.entries(rows)) {
    if (!part) continue;
    const end = kind === 'nvtx' ? 'coalesce("end", start)' : '"end"';
    const [row] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM (SELECT start, ${end} AS "end" FROM ${part}) WHERE (${sound}) IS NOT TRUE`,
    );
    count += row!.n;
  }
  if (count === 0) return [];
  const text = `${count} events end before they begin, or have times that no capture has; they are left out.`;
  return [{ code: 'impossible_times', severity: 'warning', text, count }];
}

async function unnamedRows(workbench: Workbench, { rows, shapes, strings }: NsysTables): Promise<Issue[]> {
  let count = 0;
  const named = [
    ['kernel', 'coalesce(demangledName, shortName)'],
    ['api', 'nameId'],
  ] as const;
  for (const [kind, id] of named) {
    if (!shapes[kind]) continue;
    const [row] = await workbench.query<{ n: number }>(
      `WITH missing AS (SELECT shape FROM ${shapes[kind]} WHERE ${id} IS NULL OR ${id} NOT IN (SELECT id FROM ${strings}))
       SELECT CASE WHEN EXISTS (FROM missing) THEN (SELECT count(*) FROM ${rows[kind]} SEMI JOIN missing USING (shape)) ELSE 0 END AS n`,
    );
    count += row!.n;
  }
  if (count === 0) return [];
  const text = `${count} kernels or API calls refer to names that the file does not hold; they have none here.`;
  return [{ code: 'names_missing', severity: 'warning', text, count }];
}
