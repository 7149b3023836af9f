import type { Issue } from '../../model/document.js';
import { sentence } from '../../vocabulary/sentence-template.js';
import type { Workbench } from '../../model/workbench.js';
import { maxCopyBytes, traceTables } from '../trace-tables.js';
import { createRanges } from './trace-ranges.js';
import { findRankSql } from './rank-sql.js';
import { createNames, createShapes, dropShapes, fromShape } from './trace-shapes.js';
import { copyBytesImpossible, namesMissing } from '../capture-issues.js';
import { eventKinds, type NsysTables } from './tables.js';

/** Times are exact as doubles up to this limit; a capture has no larger ones. */
export const maxTimeNs = 2 ** 53;
const hasPossibleTimes = `"end" >= start AND start > -${maxTimeNs} AND "end" < ${maxTimeNs}`;

/** Rows of kernels and whole graphs: in the file, and with valid times. */
export interface KernelRows {
  read: number;
  valid: number;
}

/**
 * Creates the trace tables from nsys's own, which it drops. Values that rows share are combined once per
 * shape, and each column gets the narrowest type that fits: a row of the largest tables takes a third of the
 * memory of a row of doubles.
 * @param offset_ns added to all times
 * @param onlyRank rank of the only process on GPUs
 * @returns counts of dropped and missing values
 */
export async function createTrace(
  workbench: Workbench,
  tables: NsysTables,
  offset_ns: number,
  onlyRank?: number,
): Promise<{ issues: Issue[]; kernels: KernelRows; severalRanks: boolean }> {
  for (const kind of eventKinds) if (tables.shapes[kind]) await tables.combine(kind, null);
  const { kernel, graph } = tables.rows;
  let read = 0;
  for (const rows of [kernel, graph])
    if (rows) read += (await workbench.query<{ n: number }>(`SELECT count(*) AS n FROM ${rows}`))[0]!.n;
  const issues = [
    ...impossibleTimes(await countImpossibleRows(workbench, tables.rows)),
    ...(await findUnnamedRows(workbench, tables)),
    ...copyBytesImpossible(await countOversizedRows(workbench, tables)),
  ];
  const rank = await findRankSql(workbench, tables, onlyRank);
  await createRanges(workbench, tables, offset_ns);
  await createNames(workbench, tables, rank.ofProcess);
  for (const table of ['trace_kernels', 'trace_copies', 'trace_api'] as const) {
    const parts: string[] = [];
    for (const kind of eventKinds) {
      if (fromShape[kind].table !== table || !tables.shapes[kind]) continue;
      await createShapes(workbench, tables, kind, rank);
      const columnsSql = traceTables[table].map((column) => {
        if (column === 'start_ns') return `CAST(start + ${offset_ns} AS BIGINT) AS start_ns`;
        if (column === 'dur_ns') return 'CAST("end" - start AS BIGINT) AS dur_ns';
        if (column === 'correlation') return `CAST(correlationId AS BIGINT) AS correlation`;
        if (column === 'bytes') return `CASE WHEN ${possibleBytes} THEN CAST(bytes AS BIGINT) END AS bytes`;
        return `s.${column}`;
      });
      parts.push(
        `SELECT ${columnsSql.join(', ')} FROM ${tables.rows[kind]} JOIN nsys_${kind}_trace s USING (shape) WHERE ${hasPossibleTimes}`,
      );
    }
    const emptySelect = `SELECT ${traceTables[table].map((column) => `NULL::DOUBLE AS ${column}`).join(', ')} WHERE false`;
    await workbench.run(`CREATE TABLE ${table} AS ${parts.join(' UNION ALL ') || emptySelect}`);
  }
  const ops = traceTables.trace_ops.map((column) => `${column} DOUBLE`);
  await workbench.run(`CREATE TABLE trace_ops (${ops.join(', ')})`);
  await dropShapes(workbench);
  await tables.drop();
  const [valid] = await workbench.query<{ n: number }>('SELECT count(*) AS n FROM trace_kernels');
  return { issues, kernels: { read, valid: valid!.n }, severalRanks: rank.ranks > 1 };
}

/** Number of rows with impossible times, of the given kinds. */
export async function countImpossibleRows(
  workbench: Workbench,
  rows: Partial<NsysTables['rows']>,
): Promise<number> {
  let count = 0;
  for (const [kind, part] of Object.entries(rows)) {
    if (!part) continue;
    const end = kind === 'nvtx' ? 'coalesce("end", start)' : '"end"';
    const [row] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM (SELECT start, ${end} AS "end" FROM ${part}) WHERE (${hasPossibleTimes}) IS NOT TRUE`,
    );
    count += row!.n;
  }
  return count;
}

export function impossibleTimes(count: number): Issue[] {
  if (count === 0) return [];
  const text = sentence`${count} events end before they start or have impossible times; they were dropped.`;
  return [{ code: 'impossible_times', severity: 'warning', ...text, count }];
}

const possibleBytes = `bytes BETWEEN 0 AND ${maxCopyBytes}`;

async function countOversizedRows(workbench: Workbench, { rows }: NsysTables): Promise<number> {
  let count = 0;
  for (const kind of ['memcpy', 'memset'] as const) {
    if (!rows[kind]) continue;
    const [row] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${rows[kind]} WHERE ${hasPossibleTimes} AND NOT (${possibleBytes})`,
    );
    count += row!.n;
  }
  return count;
}

/** The columns that name a row, by kind. */
export const nameColumns = [
  ['kernel', ['demangledName', 'shortName']],
  ['api', ['nameId']],
] as const;

/** SQL for a combination without any name in the file. */
export function isUnnamedSql(ids: readonly string[], strings: string): string {
  return ids.map((id) => `(${id} IN (SELECT id FROM ${strings})) IS NOT TRUE`).join(' AND ');
}

async function findUnnamedRows(
  workbench: Workbench,
  { rows, shapes, strings }: NsysTables,
): Promise<Issue[]> {
  let count = 0;
  for (const [kind, ids] of nameColumns) {
    if (!shapes[kind]) continue;
    const [row] = await workbench.query<{ n: number }>(
      `WITH missing AS (SELECT shape FROM ${shapes[kind]} WHERE ${isUnnamedSql(ids, strings)})
       SELECT CASE WHEN EXISTS (FROM missing) THEN (SELECT count(*) FROM ${rows[kind]} SEMI JOIN missing USING (shape)) ELSE 0 END AS n`,
    );
    count += row!.n;
  }
  return namesMissing(count);
}
