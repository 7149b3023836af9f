import type { Issue } from '../../model/document.js';
import type { Workbench } from '../../model/workbench.js';
import { traceTables } from '../trace-tables.js';
import { createNames, fixedCode, names } from './trace-names.js';
import { createRanges } from './trace-ranges.js';
import type { NsysTables } from './tables.js';

/** cudaMemcpyKind as CUPTI has it (ENUM_CUDA_MEMCPY_OPER); arrays count as device memory. */
const copyKinds: Record<number, string> = {
  1: 'HtoD',
  2: 'DtoH',
  3: 'HtoD',
  4: 'DtoH',
  5: 'DtoD',
  6: 'DtoD',
  7: 'DtoD',
  8: 'DtoD',
  9: 'HtoH',
  10: 'PtoP',
  11: 'HtoD',
  12: 'DtoH',
  13: 'DtoD',
};

/** ENUM_CUDA_MEM_KIND; 7 is unknown. */
const memoryKinds: Record<number, string> = {
  0: 'pageable',
  1: 'pinned',
  2: 'device',
  3: 'device',
  4: 'managed',
  5: 'device',
  6: 'managed',
};

/** eventClass of an API row. */
const apiKinds: Record<number, string> = { 0: 'runtime', 1: 'driver' };

/** Times of a trace are exact as doubles only to here; more is no time of a capture. */
const latest = 2 ** 53;
const sound = `"end" >= start AND start > -${latest} AND "end" < ${latest}`;

/**
 * Fills the trace tables from nsys's own. Large tables are views, as attribution reads each once or twice and needs
 * few columns of them at a time: copying them would cost more memory than the rest of the import.
 * @param offset_ns added to every time
 * @returns what was left out or is missing, counted
 */
export async function createTrace(
  workbench: Workbench,
  tables: NsysTables,
  offset_ns: number,
): Promise<Issue[]> {
  const { rows } = tables;
  const rank = await rankOf(workbench, tables);
  const time = `CAST(start + ${offset_ns} AS DOUBLE) AS start_ns, CAST("end" - start AS DOUBLE) AS dur_ns`;
  const device = `CAST(pid AS DOUBLE) AS pid, ${rank} AS rank, CAST(deviceId AS DOUBLE) AS device,
    CAST(contextId AS DOUBLE) AS context, CAST(streamId AS DOUBLE) AS stream, CAST(correlationId AS DOUBLE) AS correlation`;

  const kernels = [empty('trace_kernels')];
  if (rows.kernel)
    kernels.push(`SELECT ${time}, ${device}, ${names.kernel} AS name, ${names.short} AS short_name,
      ${names.grid} AS grid, ${names.block} AS block, CAST(registersPerThread AS DOUBLE) AS registers,
      CAST(coalesce(staticSharedMemory, 0) + coalesce(dynamicSharedMemory, 0) AS DOUBLE) AS shared_mem_bytes,
      CAST(graphId AS DOUBLE) AS graph_id, CAST(graphNodeId AS DOUBLE) AS graph_node,
      0::DOUBLE AS opaque_graph, NULL::DOUBLE AS op_id FROM ${rows.kernel} WHERE ${sound}`);
  if (rows.graph)
    kernels.push(`SELECT ${time}, ${device}, ${names.graph} AS name, ${names.graph} AS short_name, NULL::DOUBLE AS grid,
      NULL::DOUBLE AS block, NULL::DOUBLE AS registers, NULL::DOUBLE AS shared_mem_bytes,
      CAST(graphId AS DOUBLE) AS graph_id, NULL::DOUBLE AS graph_node, 1::DOUBLE AS opaque_graph, NULL::DOUBLE AS op_id FROM ${rows.graph} WHERE ${sound}`);
  await workbench.run(`CREATE VIEW trace_kernels AS ${union(kernels)}`);

  const copies = [empty('trace_copies')];
  if (rows.memcpy)
    copies.push(`SELECT ${time}, ${device}, ${coded('copyKind', copyKinds)} AS kind,
      ${coded('srcKind', memoryKinds)} AS src_kind, ${coded('dstKind', memoryKinds)} AS dst_kind,
      CAST(bytes AS DOUBLE) AS bytes, CAST(graphNodeId AS DOUBLE) AS graph_node, NULL::DOUBLE AS op_id
      FROM ${rows.memcpy} WHERE ${sound}`);
  if (rows.memset)
    copies.push(`SELECT ${time}, ${device}, ${fixedCode('memset')} AS kind, NULL::DOUBLE AS src_kind,
      ${coded('memKind', memoryKinds)} AS dst_kind, CAST(bytes AS DOUBLE) AS bytes,
      CAST(graphNodeId AS DOUBLE) AS graph_node, NULL::DOUBLE AS op_id FROM ${rows.memset} WHERE ${sound}`);
  await workbench.run(`CREATE VIEW trace_copies AS ${union(copies)}`);

  const api = [empty('trace_api')];
  if (rows.api)
    api.push(`SELECT ${time}, CAST(pid AS DOUBLE) AS pid, CAST(tid AS DOUBLE) AS tid, ${rank} AS rank,
      CAST(correlationId AS DOUBLE) AS correlation, ${names.api} AS name, ${coded('eventClass', apiKinds)} AS api
      FROM ${rows.api} WHERE ${sound}`);
  await workbench.run(`CREATE VIEW trace_api AS ${union(api)}`);

  await createRanges(workbench, tables, offset_ns, rank);
  await workbench.run(`CREATE VIEW trace_ops AS ${empty('trace_ops')}`);
  await createNames(workbench, tables, [
    ...new Set([...Object.values(copyKinds), 'memset', ...Object.values(memoryKinds), 'runtime', 'driver']),
  ]);
  return [...(await unsoundRows(workbench, tables)), ...(await unnamedRows(workbench, tables))];
}

/** Views and tables of createTrace, and what they read from. */
export async function dropTrace(workbench: Workbench, tables: NsysTables): Promise<void> {
  for (const view of ['trace_kernels', 'trace_copies', 'trace_api', 'trace_ops'])
    await workbench.run(`DROP VIEW IF EXISTS ${view}`);
  for (const table of ['trace_ranges', 'trace_names']) await workbench.run(`DROP TABLE IF EXISTS ${table}`);
  await tables.drop();
}

function empty(table: keyof typeof traceTables): string {
  const columns = traceTables[table].map((column) => `NULL::DOUBLE AS ${column}`);
  return `SELECT ${columns.join(', ')} WHERE false`;
}

/** The empty part names and types the columns; it is left out where there is anything else, as it costs a scan its plan. */
function union([none, ...parts]: string[]): string {
  return parts.length > 0 ? parts.join(' UNION ALL ') : none!;
}

function coded(column: string, texts: Record<number, string>): string {
  const cases = Object.entries(texts).map(([value, text]) => `WHEN ${value} THEN ${fixedCode(text)}`);
  return `CASE CAST(${column} AS BIGINT) ${cases.join(' ')} END`;
}

/** With one process its rank is 0; of several nsys knows no order. */
async function rankOf(workbench: Workbench, { shapes }: NsysTables): Promise<string> {
  const parts = [shapes.kernel, shapes.graph, shapes.memcpy, shapes.memset].filter((part) => part !== null);
  if (parts.length === 0) return '0::DOUBLE';
  const [row] = await workbench.query<{ n: number }>(
    `SELECT count(DISTINCT pid) AS n FROM (${parts.map((part) => `SELECT pid FROM ${part}`).join(' UNION ALL ')})`,
  );
  return row!.n > 1 ? 'NULL::DOUBLE' : '0::DOUBLE';
}

async function unsoundRows(workbench: Workbench, { rows }: NsysTables): Promise<Issue[]> {
  const parts = [rows.kernel, rows.graph, rows.memcpy, rows.memset, rows.api].filter((part) => part !== null);
  if (rows.nvtx) parts.push(`(SELECT start, coalesce("end", start) AS "end" FROM ${rows.nvtx})`);
  let count = 0;
  for (const part of parts) {
    const [row] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${part} WHERE (${sound}) IS NOT TRUE`,
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
    [shapes.kernel, rows.kernel, 'coalesce(demangledName, shortName)'],
    [shapes.api, rows.api, 'nameId'],
  ] as const;
  for (const [shape, all, id] of named) {
    if (!shape || !all) continue;
    const missing = await workbench.query<{ id: number | null }>(
      `SELECT DISTINCT CAST(${id} AS DOUBLE) AS id FROM ${shape} WHERE ${id} IS NULL OR ${id} NOT IN (SELECT id FROM ${strings})`,
    );
    if (missing.length === 0) continue;
    const ids = missing.flatMap(({ id: missed }) => (missed === null ? [] : [missed]));
    const [row] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${all} WHERE ${id} IS NULL ${ids.length > 0 ? `OR ${id} IN (${ids.join(', ')})` : ''}`,
    );
    count += row!.n;
  }
  if (count === 0) return [];
  const text = `${count} kernels or API calls refer to names that the file does not hold; they have none here.`;
  return [{ code: 'names_missing', severity: 'warning', text, count }];
}
