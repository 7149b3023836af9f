import type { Issue } from '../../model/document.js';
import type { Columns, Workbench } from '../../model/workbench.js';
import { type HeldEvents, heldEvents, type HeldTrace } from '../attribution/held/held-trace.js';
import { traceTables, type TraceTable } from '../trace-tables.js';
import { shapeCodes } from './shape-codes.js';
import { type EventKind, eventKinds, type NsysTables } from './tables.js';
import { impossibleTimes, latest, named, namesMissing, rankOf, unsoundRows } from './trace.js';
import { createRanges } from './trace-ranges.js';
import { createNames, createShapes, dropShapes, fromShape } from './trace-shapes.js';

/**
 * As createTrace, but kernels, copies and calls come in memory; of the trace tables only ranges, operators (none) and
 * names are made.
 */
export async function holdTrace(
  workbench: Workbench,
  tables: NsysTables,
  offset_ns: number,
): Promise<{ issues: Issue[]; held: HeldTrace }> {
  const rank = await rankOf(workbench, tables);
  await createRanges(workbench, tables, offset_ns, rank);
  await createNames(workbench, tables);
  const losses: Losses = { unsound: 0, unnamed: 0 };
  const held = {
    kernels: await hold(workbench, tables, 'trace_kernels', rank, offset_ns, losses),
    copies: await hold(workbench, tables, 'trace_copies', rank, offset_ns, losses),
    calls: await hold(workbench, tables, 'trace_api', rank, offset_ns, losses),
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

/** All kinds of rows of one trace table, their combinations numbered through. */
async function hold(
  workbench: Workbench,
  tables: NsysTables,
  table: TraceTable,
  rank: string,
  offset_ns: number,
  losses: Losses,
): Promise<HeldEvents> {
  const kinds = eventKinds.filter((kind) => fromShape[kind].table === table && tables.shapes[kind]);
  const names = traceTables[table].filter((name) => !rowColumns.has(name));
  const events = heldEvents(
    kinds.reduce((sum, kind) => sum + tables.counts[kind], 0),
    table === 'trace_copies',
  );
  const values: number[][] = names.map(() => []);
  for (const kind of kinds) {
    await createShapes(workbench, tables, kind, rank);
    const codes = shapeCodes();
    const first = values[0]!.length;
    const shapes = await workbench.query<Record<string, number | null>>(
      `SELECT CAST(shape AS DOUBLE) AS shape, ${names.join(', ')} FROM nsys_${kind}_trace`,
    );
    shapes.forEach((shape, code) => {
      codes.set(shape['shape']!, first + code);
      names.forEach((name, n) => values[n]!.push(shape[name] ?? Number.NaN));
    });
    const unnamed = await unnamedShapes(workbench, tables, kind);
    for await (const { rows, columns } of tables.events(kind)) {
      const [start, end, id] = [columns['start']!, columns['end']!, columns['correlationId']!];
      const [shape, bytes] = [columns['shape']!, columns['bytes']];
      for (let r = 0; r < rows; r++) {
        const from = start[r]!;
        const to = end[r]!;
        if (unnamed.size > 0 && unnamed.has(shape[r]!)) losses.unnamed++;
        if (to >= from && from > -latest && to < latest)
          events.add(from + offset_ns, to - from, id[r]!, codes.get(shape[r]!), bytes ? bytes[r]! : 0);
        else losses.unsound++;
      }
    }
  }
  const shapes: Columns = Object.fromEntries(names.map((name, n) => [name, Float64Array.from(values[n]!)]));
  return events.finish(shapes);
}

const rowColumns: ReadonlySet<string> = new Set(['start_ns', 'dur_ns', 'correlation', 'bytes']);

async function unnamedShapes(
  workbench: Workbench,
  { shapes, strings }: NsysTables,
  kind: EventKind,
): Promise<ReadonlySet<number>> {
  const id = named.find(([of]) => of === kind)?.[1];
  if (!id) return new Set();
  const found = await workbench.query<{ shape: number }>(
    `SELECT CAST(shape AS DOUBLE) AS shape FROM ${shapes[kind]} WHERE ${id} IS NULL OR ${id} NOT IN (SELECT id FROM ${strings})`,
  );
  return new Set(found.map(({ shape }) => shape));
}
