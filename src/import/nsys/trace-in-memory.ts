import type { Issue } from '../../model/document.js';
import type { Columns, Workbench } from '../../model/workbench.js';
import {
  type EventArrays,
  eventArrays,
  sortedEvents,
  type InMemoryTrace,
} from '../attribution/in-memory/trace.js';
import { traceTables, type TraceTable } from '../trace-tables.js';
import { resolveRanges, readRanges } from './ranges-in-memory.js';
import { UnreadableRows } from './damage.js';
import { type EventKind, eventKinds, type NsysTables } from './tables.js';
import type { EventsRead } from './take-events.js';
import { copyBytesImpossible, namesMissing } from '../capture-issues.js';
import { impossibleTimes, type KernelRows, maxTimeNs, nameColumns, isUnnamedSql } from './trace.js';
import { findRankSql, type RankSql } from './rank-sql.js';
import { createTexts, createWideShapes, dropShapes, fromShape } from './trace-shapes.js';
import { unlessAborted } from './unless-aborted.js';
import type { InMemoryEvents } from '../attribution/in-memory/events.js';

/**
 * Like createTrace, but ranges, kernels, copies and calls stay in memory; only the trace tables of operators (empty)
 * and names are created. Combinations are numbered in order of occurrence.
 * @throws E_INTERRUPTED while rows are read
 */
export async function readTraceInMemory(
  workbench: Workbench,
  tables: NsysTables,
  offset_ns: number,
  { signal, rank: onlyRank }: { signal?: AbortSignal | undefined; rank?: number | undefined } = {},
): Promise<{ issues: Issue[]; trace: InMemoryTrace; kernels: KernelRows; severalRanks: boolean }> {
  const losses: Losses = { impossible: 0, unnamed: 0, oversized: 0 };
  const reading = Promise.all([
    readTables(tables, offset_ns, losses),
    readRanges(workbench, tables, offset_ns),
  ]);
  const [parts, rangeRows] = await unlessAborted(reading, signal);
  for (const { kind, first_rows } of Object.values(parts).flatMap(({ kinds }) => kinds))
    await tables.combine(kind, [...first_rows]);
  const rank = await findRankSql(workbench, tables, onlyRank);
  await createTexts(workbench, tables, 'nsys_range_texts');
  const trace: InMemoryTrace = {
    ranges: await resolveRanges(workbench, rangeRows, rank.ofProcess),
    kernels: await resolveShapes(workbench, tables, parts.trace_kernels, rank, losses),
    copies: await resolveShapes(workbench, tables, parts.trace_copies, rank, losses),
    calls: await resolveShapes(workbench, tables, parts.trace_api, rank, losses),
  };
  const ops = traceTables.trace_ops.map((column) => `${column} DOUBLE`);
  await workbench.run(`CREATE TABLE trace_ops (${ops.join(', ')})`);
  await dropShapes(workbench);
  await tables.drop();
  return {
    issues: [
      ...impossibleTimes(losses.impossible + rangeRows.impossible),
      ...namesMissing(losses.unnamed),
      ...copyBytesImpossible(losses.oversized),
    ],
    trace,
    kernels: {
      read: parts.trace_kernels.kinds.reduce((sum, { rows, impossible }) => sum + rows + impossible, 0),
      valid: trace.kernels.rows,
    },
    severalRanks: rank.ranks > 1,
  };
}

interface Losses {
  impossible: number;
  unnamed: number;
  oversized: number;
}

/** All row kinds of one trace table. */
interface TableRows {
  table: TraceTable;
  arrays: EventArrays;
  rows: number;
  sorted: boolean;
  /** Consecutive; the codes of each kind's combinations start at `first_code`. */
  kinds: (EventsRead & { kind: EventKind; first_code: number })[];
}

/** In parallel: a thread of its own may read each of the large ones. */
async function readTables(tables: NsysTables, offset_ns: number, losses: Losses) {
  const [trace_kernels, trace_copies, trace_api] = await Promise.all([
    readTable(tables, 'trace_kernels', offset_ns, losses),
    readTable(tables, 'trace_copies', offset_ns, losses),
    readTable(tables, 'trace_api', offset_ns, losses),
  ]);
  return { trace_kernels, trace_copies, trace_api };
}

async function readTable(
  tables: NsysTables,
  table: TraceTable,
  offset_ns: number,
  losses: Losses,
): Promise<TableRows> {
  const kinds = eventKinds.filter((kind) => fromShape[kind].table === table && tables.shapes[kind]);
  const totalRows = kinds.reduce((sum, kind) => sum + tables.counts[kind], 0);
  const arrays = eventArrays(totalRows, table === 'trace_copies');
  const tableRows: TableRows = { table, arrays, rows: 0, sorted: true, kinds: [] };
  let first_code = 0;
  for (const kind of kinds) {
    const target = { into: arrays, first_row: tableRows.rows, first_code, offset_ns, limit_ns: maxTimeNs };
    const read = await tables.read(kind, target);
    const continuesInOrder =
      tableRows.rows === 0 || arrays.start_ns[tableRows.rows]! >= arrays.start_ns[tableRows.rows - 1]!;
    tableRows.sorted &&= read.sorted && (read.rows === 0 || continuesInOrder);
    tableRows.rows += read.rows;
    losses.impossible += read.impossible;
    losses.oversized += read.oversized;
    tableRows.kinds.push({ ...read, kind, first_code });
    first_code += read.keys.length;
  }
  return tableRows;
}

/** Resolves the combinations of the rows. */
async function resolveShapes(
  workbench: Workbench,
  tables: NsysTables,
  { table, arrays, rows, sorted, kinds }: TableRows,
  rank: RankSql,
  losses: Losses,
): Promise<InMemoryEvents> {
  const names = traceTables[table].filter((name) => !rowColumns.has(name));
  const combinations = kinds.reduce((sum, { keys }) => sum + keys.length, 0);
  const shapes: Columns = {};
  for (const name of names) shapes[name] = new Float64Array(combinations).fill(Number.NaN);
  for (const { kind, first_code, keys, counts } of kinds) {
    const codes = new Map([...keys].map((key, code) => [key, code]));
    await createWideShapes(workbench, tables, kind, rank);
    const shapeRows = await workbench.query<Record<string, number | null>>(
      `SELECT CAST(shape AS DOUBLE) AS shape, ${names.join(', ')} FROM nsys_${kind}_trace`,
    );
    let resolvedCount = 0;
    for (const shape of shapeRows) {
      const code = codes.get(shape['shape']!);
      if (code === undefined) continue;
      resolvedCount++;
      for (const name of names) shapes[name]![first_code + code] = shape[name] ?? Number.NaN;
    }
    if (resolvedCount < keys.length)
      throw new UnreadableRows(
        `${keys.length - resolvedCount} combinations of ${kind} could not be read again.`,
      );
    for (const key of await findUnnamedShapes(workbench, tables, kind))
      losses.unnamed += counts[codes.get(key) ?? -1] ?? 0;
  }
  return sortedEvents(arrays, rows, sorted, shapes);
}

const rowColumns: ReadonlySet<string> = new Set(['start_ns', 'dur_ns', 'correlation', 'bytes']);

async function findUnnamedShapes(
  workbench: Workbench,
  { shapes, strings }: NsysTables,
  kind: EventKind,
): Promise<number[]> {
  const ids = nameColumns.find(([namedKind]) => namedKind === kind)?.[1];
  if (!ids) return [];
  const shapeRows = await workbench.query<{ shape: number }>(
    `SELECT CAST(shape AS DOUBLE) AS shape FROM ${shapes[kind]} WHERE ${isUnnamedSql(ids, strings)}`,
  );
  return shapeRows.map(({ shape }) => shape);
}
