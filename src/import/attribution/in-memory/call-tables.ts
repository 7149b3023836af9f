import type { InMemoryEvents } from './events.js';

/** The calls of one process by correlation id. */
export interface CallTable {
  least: number;
  most: number;
  count: number;
  /** Row + 1 of the call with id `least` + index, 0 when there is none; empty when ids are too far apart. */
  dense: Int32Array;
  /** The same by id, used when `dense` is empty. */
  sparse: Map<number, number>;
  /** Calls with the correlation id of another call. */
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
    if (id < table.least) table.least = id;
    if (id > table.most) table.most = id;
  }
  for (const table of tables.values()) {
    const span = table.most - table.least;
    if (table.count > 0 && span < table.count * sparseFactor) table.dense = new Int32Array(span + 1);
  }
  for (let i = 0; i < rows; i++) {
    const id = correlation[i]!;
    if (Number.isNaN(id)) continue;
    const table = tableOf[shape[i]!]!;
    const { dense } = table;
    const at = id - table.least;
    if (dense.length > 0 && dense[at] === 0) dense[at] = i + 1;
    else put(table, calls, id, i);
  }
  return tables;
}

export function emptyTable(): CallTable {
  return {
    least: Number.POSITIVE_INFINITY,
    most: Number.NEGATIVE_INFINITY,
    count: 0,
    dense: new Int32Array(),
    sparse: new Map(),
    shared: 0,
  };
}

/** An id that another call already has, or one outside a dense table. */
function put(table: CallTable, { start_ns, dur_ns }: InMemoryEvents, id: number, row: number): void {
  const known = callOf(table, id);
  if (known >= 0) {
    table.shared++;
    // Rows are sorted by start: the later row can be the outer call only when both start together.
    if (start_ns[row] !== start_ns[known] || dur_ns[row]! <= dur_ns[known]!) return;
  }
  if (table.dense.length > 0) table.dense[id - table.least] = row + 1;
  else table.sparse.set(id, row + 1);
}

/** Row of the call with this id, −1 when there is none. */
export function callOf({ dense, least, sparse }: CallTable, id: number): number {
  return ((dense.length === 0 ? sparse.get(id) : dense[id - least]) ?? 0) - 1;
}
