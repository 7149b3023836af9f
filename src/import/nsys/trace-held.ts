import type { Issue } from '../../model/document.js';
import type { Columns, Workbench } from '../../model/workbench.js';
import {
  type HeldBuilder,
  type HeldEvents,
  heldEvents,
  type HeldTrace,
} from '../attribution/held/held-trace.js';
import { traceTables, type TraceTable } from '../trace-tables.js';
import { type ShapeCodes, shapeCodes } from './shape-codes.js';
import { type EventKind, eventKinds, type NsysTables } from './tables.js';
import { impossibleTimes, latest, named, namesMissing, rankOf, unsoundRows } from './trace.js';
import { createRanges } from './trace-ranges.js';
import { createNames, createShapes, dropShapes, fromShape } from './trace-shapes.js';

/**
 * As createTrace, but kernels, copies and calls come in memory; of the trace tables only ranges, operators (none) and
 * names are made. The rows are read while the database makes the ranges; combinations are numbered as they are met.
 */
export async function holdTrace(
  workbench: Workbench,
  tables: NsysTables,
  offset_ns: number,
): Promise<{ issues: Issue[]; held: HeldTrace }> {
  const losses: Losses = { unsound: 0, unnamed: 0 };
  const [parts] = await Promise.all([
    readTables(tables, offset_ns, losses),
    createRanges(workbench, tables, offset_ns),
  ]);
  for (const { kind, firstRows } of Object.values(parts).flatMap(({ kinds }) => kinds))
    await tables.combine(kind, firstRows);
  const rank = await rankOf(workbench, tables);
  await createNames(workbench, tables, rank);
  const held: HeldTrace = {
    kernels: await finish(workbench, tables, parts.trace_kernels, rank, losses),
    copies: await finish(workbench, tables, parts.trace_copies, rank, losses),
    calls: await finish(workbench, tables, parts.trace_api, rank, losses),
  };
  const ops = traceTables.trace_ops.map((column) => `${column} DOUBLE`);
  await workbench.run(`CREATE TABLE trace_ops (${ops.join(', ')})`);
  const ranges = await unsoundRows(workbench, { nvtx: tables.rows.nvtx });
  await dropShapes(workbench);
  await tables.drop();
  return { issues: [...impossibleTimes(losses.unsound + ranges), ...namesMissing(losses.unnamed)], held };
}

interface Losses {
  unsound: number;
  unnamed: number;
}

/** The rows of one kind as they were read. */
interface KindRows {
  kind: EventKind;
  /** Keys of its combinations to their codes, which are numbered through all kinds of a table. */
  codes: ShapeCodes;
  /** Of its combinations, in the order of their codes. */
  firstRows: number[];
  /** Rows of each. */
  counts: number[];
}

/** All kinds of rows of one trace table. */
interface TableRows {
  table: TraceTable;
  events: HeldBuilder;
  kinds: KindRows[];
}

/** Together: a thread may read each of the large ones. */
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
  const own = eventKinds.filter((kind) => fromShape[kind].table === table && tables.shapes[kind]);
  const events = heldEvents(
    own.reduce((sum, kind) => sum + tables.counts[kind], 0),
    table === 'trace_copies',
  );
  const kinds: KindRows[] = [];
  let first = 0;
  for (const kind of own) {
    const read = { kind, codes: shapeCodes(), firstRows: [] as number[], counts: [] as number[] };
    let before = 0;
    for await (const { rows, columns } of tables.events(kind)) {
      const [start, end, id] = [columns['start']!, columns['end']!, columns['correlationId']!];
      const [shape, bytes] = [columns['shape']!, columns['bytes']];
      for (let r = 0; r < rows; r++) {
        const from = start[r]!;
        const to = end[r]!;
        let code = read.codes.get(shape[r]!);
        if (code < 0) {
          code = first + read.firstRows.length;
          read.codes.set(shape[r]!, code);
          read.firstRows.push(before + r);
          read.counts.push(0);
        }
        read.counts[code - first]!++;
        if (to >= from && from > -latest && to < latest)
          events.add(from + offset_ns, to - from, id[r]!, code, bytes ? bytes[r]! : 0);
        else losses.unsound++;
      }
      before += rows;
    }
    first += read.firstRows.length;
    kinds.push(read);
  }
  return { table, events, kinds };
}

/** Puts what the combinations stand for to the rows. */
async function finish(
  workbench: Workbench,
  tables: NsysTables,
  { table, events, kinds }: TableRows,
  rank: string,
  losses: Losses,
): Promise<HeldEvents> {
  const names = traceTables[table].filter((name) => !rowColumns.has(name));
  const combinations = kinds.reduce((sum, { counts }) => sum + counts.length, 0);
  const shapes: Columns = {};
  for (const name of names) shapes[name] = new Float64Array(combinations).fill(Number.NaN);
  let first = 0;
  for (const { kind, codes, counts } of kinds) {
    await createShapes(workbench, tables, kind, rank);
    const found = await workbench.query<Record<string, number | null>>(
      `SELECT CAST(shape AS DOUBLE) AS shape, ${names.join(', ')} FROM nsys_${kind}_trace`,
    );
    let known = 0;
    for (const shape of found) {
      const code = codes.get(shape['shape']!);
      if (code < 0) continue;
      known++;
      for (const name of names) shapes[name]![code] = shape[name] ?? Number.NaN;
    }
    if (known < counts.length) throw new Error(`${counts.length - known} combinations of ${kind} were lost`);
    for (const key of await unnamedShapes(workbench, tables, kind))
      losses.unnamed += counts[codes.get(key) - first] ?? 0;
    first += counts.length;
  }
  return events.finish(shapes);
}

const rowColumns: ReadonlySet<string> = new Set(['start_ns', 'dur_ns', 'correlation', 'bytes']);

async function unnamedShapes(
  workbench: Workbench,
  { shapes, strings }: NsysTables,
  kind: EventKind,
): Promise<number[]> {
  const id = named.find(([of]) => of === kind)?.[1];
  if (!id) return [];
  const found = await workbench.query<{ shape: number }>(
    `SELECT CAST(shape AS DOUBLE) AS shape FROM ${shapes[kind]} WHERE ${id} IS NULL OR ${id} NOT IN (SELECT id FROM ${strings})`,
  );
  return found.map(({ shape }) => shape);
}
