import type { Issue } from '../../model/document.js';
import type { Workbench } from '../../model/workbench.js';
import { traceTables } from '../trace-tables.js';
import { createRanges } from './trace-ranges.js';
import { createNames, createShapes, dropShapes, fromShape } from './trace-shapes.js';
import { eventKinds, type NsysTables } from './tables.js';

/** Times of a trace are exact as doubles only to here; more is no time of a capture. */
export const latest = 2 ** 53;
const sound = `"end" >= start AND start > -${latest} AND "end" < ${latest}`;

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
  for (const kind of eventKinds) if (tables.shapes[kind]) await tables.combine(kind, null);
  const issues = [
    ...impossibleTimes(await unsoundRows(workbench, tables.rows)),
    ...(await unnamedRows(workbench, tables)),
  ];
  const rank = await rankOf(workbench, tables);
  await createRanges(workbench, tables, offset_ns);
  await createNames(workbench, tables, rank);
  for (const table of ['trace_kernels', 'trace_copies', 'trace_api'] as const) {
    const parts: string[] = [];
    for (const kind of eventKinds) {
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
  await dropShapes(workbench);
  await tables.drop();
  return issues;
}

/**
 * SQL for the rank of a row's process: with one process on GPUs 0; of several by the order of their first devices, as
 * launchers place ranks. Processes without GPU work have none.
 */
export async function rankOf(workbench: Workbench, { shapes }: NsysTables): Promise<string> {
  const parts = [shapes.kernel, shapes.graph, shapes.memcpy, shapes.memset].filter((part) => part !== null);
  if (parts.length === 0) return '0';
  const union = parts.map((part) => `SELECT pid, "deviceId" AS device FROM ${part}`).join(' UNION ALL ');
  const processes = await workbench.query<{ pid: number }>(
    `SELECT CAST(pid AS BIGINT) AS pid FROM (${union}) GROUP BY ALL ORDER BY min(device), pid`,
  );
  if (processes.length < 2) return '0';
  return `CASE pid ${processes.map(({ pid }, rank) => `WHEN ${pid} THEN ${rank}`).join(' ')} END::BIGINT`;
}

/** Rows that cannot be, of the kinds given. */
export async function unsoundRows(workbench: Workbench, rows: Partial<NsysTables['rows']>): Promise<number> {
  let count = 0;
  for (const [kind, part] of Object.entries(rows)) {
    if (!part) continue;
    const end = kind === 'nvtx' ? 'coalesce("end", start)' : '"end"';
    const [row] = await workbench.query<{ n: number }>(
      `SELECT count(*) AS n FROM (SELECT start, ${end} AS "end" FROM ${part}) WHERE (${sound}) IS NOT TRUE`,
    );
    count += row!.n;
  }
  return count;
}

export function impossibleTimes(count: number): Issue[] {
  if (count === 0) return [];
  const text = `${count} events end before they begin, or have times that no capture has; they are left out.`;
  return [{ code: 'impossible_times', severity: 'warning', text, count }];
}

/** What a row of a kind is named by. */
export const named = [
  ['kernel', 'coalesce(demangledName, shortName)'],
  ['api', 'nameId'],
] as const;

async function unnamedRows(workbench: Workbench, { rows, shapes, strings }: NsysTables): Promise<Issue[]> {
  let count = 0;
  for (const [kind, id] of named) {
    if (!shapes[kind]) continue;
    const [row] = await workbench.query<{ n: number }>(
      `WITH missing AS (SELECT shape FROM ${shapes[kind]} WHERE ${id} IS NULL OR ${id} NOT IN (SELECT id FROM ${strings}))
       SELECT CASE WHEN EXISTS (FROM missing) THEN (SELECT count(*) FROM ${rows[kind]} SEMI JOIN missing USING (shape)) ELSE 0 END AS n`,
    );
    count += row!.n;
  }
  return namesMissing(count);
}

export function namesMissing(count: number): Issue[] {
  if (count === 0) return [];
  const text = `${count} kernels or API calls refer to names that the file does not hold; they have none here.`;
  return [{ code: 'names_missing', severity: 'warning', text, count }];
}
