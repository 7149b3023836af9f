import type { InMemoryEvents } from './events.js';

/** The calls of one process by correlation id. */
export interface CallTable {
  minId: number;
  maxId: number;
  count: number;
  /** Row + 1 of the call with id `minId` + index, 0 when there is none; empty when ids are too far apart. */
  dense: Int32Array;
  /** Row + 1 by id, used when `dense` is empty. */
  sparse: Map<number, number>;
  /** Calls with the correlation id of an earlier call. */
  shared: number;
}

/** CUPTI counts ids up: a table over all of them is small unless a damaged file has random ids. */
const sparseFactor = 16;

/** By pid. */
export function callTables(calls: InMemoryEvents): Map<number, CallTable> {
  const tables = new Map<number, CallTable>();
  const { rows, correlation, shape } = calls;
  const tableOf = Array.from(calls.shapes['pid'] ?? [], (pid) => {
    if (!tables.has(pid)) tables.set(pid, emptyTable());
    return tables.get(pid)!;
  });
  for (let i = 0; i < rows; i++) {
    const id = correlation[i]!;
    if (Number.isNaN(id)) continue;
    const table = tableOf[shape[i]!]!;
    table.count++;
    if (id < table.minId) table.minId = id;
    if (id > table.maxId) table.maxId = id;
  }
  for (const table of tables.values()) {
    const span = table.maxId - table.minId;
    if (table.count > 0 && span < table.count * sparseFactor) table.dense = new Int32Array(span + 1);
  }
  for (let i = 0; i < rows; i++) {
    const id = correlation[i]!;
    if (Number.isNaN(id)) continue;
    const table = tableOf[shape[i]!]!;
    const { dense } = table;
    const index = id - table.minId;
    if (dense.length > 0 && dense[index] === 0) dense[index] = i + 1;
    else addToTable(table, calls, id, i);
  }
  return tables;
}

export function emptyTable(): CallTable {
  return {
    minId: Number.POSITIVE_INFINITY,
    maxId: Number.NEGATIVE_INFINITY,
    count: 0,
    dense: new Int32Array(),
    sparse: new Map(),
    shared: 0,
  };
}

/** Adds a call with an id that an earlier call has, or to a table without `dense`. */
function addToTable(table: CallTable, { start_ns, dur_ns }: InMemoryEvents, id: number, row: number): void {
  const existingRow = callOf(table, id);
  if (existingRow >= 0) {
    table.shared++;
    // Rows are sorted by start: the later row can be the outer call only when both start together.
    if (start_ns[row] !== start_ns[existingRow] || dur_ns[row]! <= dur_ns[existingRow]!) return;
  }
  if (table.dense.length > 0) table.dense[id - table.minId] = row + 1;
  else table.sparse.set(id, row + 1);
}

/** Row of the call with this id, −1 when there is none. */
export function callOf({ dense, minId, sparse }: CallTable, id: number): number {
  return ((dense.length === 0 ? sparse.get(id) : dense[id - minId]) ?? 0) - 1;
}
