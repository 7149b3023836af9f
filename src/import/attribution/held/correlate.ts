import type { HeldEvents } from './held-trace.js';
import { sharedInts } from './shared-arrays.js';

export interface Correlated {
  /** Row of the call that launched it; −1: none. */
  kernels: Int32Array;
  copies: Int32Array;
  /** Calls that share the id of another, counted once for each activity they could have launched. */
  shared: number;
}

/** Ids are counted up by CUPTI: a table over all of them is small unless a damaged file makes them up. */
const sparseFactor = 16;

/**
 * Activities find their call by (pid, correlation): an id alone is unique only within a process. A runtime call and the
 * driver call inside it may share one: the outer one, which began first, counts.
 */
export function correlate(calls: HeldEvents, kernels: HeldEvents, copies: HeldEvents): Correlated {
  const tables = callTables(calls);
  let shared = 0;
  const find = ({ rows, correlation, shape, shapes }: HeldEvents): Int32Array => {
    const found = sharedInts(rows);
    const byShape = Array.from(shapes['pid'] ?? [], (pid) => tables.get(pid));
    for (let i = 0; i < rows; i++) {
      const table = byShape[shape[i]!];
      const id = correlation[i]!;
      found[i] = table ? table.call(id) : -1;
      if (table && table.others.size > 0) shared += table.others.get(id) ?? 0;
    }
    return found;
  };
  return {
    kernels: find(kernels),
    copies: find(copies),
    get shared() {
      return shared;
    },
  };
}

interface CallTable {
  /** Row of the call with this id, −1 when there is none. */
  call(id: number): number;
  /** How many more calls than one have this id. */
  others: Map<number, number>;
}

function callTables(calls: HeldEvents): Map<number, CallTable> {
  const ranges = new Map<number, { least: number; most: number; count: number }>();
  const pids = calls.shapes['pid'] ?? new Float64Array();
  for (const pid of pids) ranges.set(pid, { least: Number.POSITIVE_INFINITY, most: -1, count: 0 });
  const rangeOf = Array.from(pids, (pid) => ranges.get(pid)!);
  for (let i = 0; i < calls.rows; i++) {
    const id = calls.correlation[i]!;
    if (Number.isNaN(id)) continue;
    const range = rangeOf[calls.shape[i]!]!;
    range.count++;
    if (id < range.least) range.least = id;
    if (id > range.most) range.most = id;
  }
  const tables = new Map<number, CallTable & { add(id: number, row: number): void }>();
  for (const [pid, { least, most, count }] of ranges)
    tables.set(pid, callTable(calls, least, most - least < count * sparseFactor ? most - least + 1 : 0));
  const tableOf = Array.from(pids, (pid) => tables.get(pid)!);
  for (let i = 0; i < calls.rows; i++) {
    const id = calls.correlation[i]!;
    if (!Number.isNaN(id)) tableOf[calls.shape[i]!]!.add(id, i);
  }
  return tables;
}

/** @param size of a table from `least` on; 0: ids too far apart for one */
function callTable(
  { start_ns, dur_ns }: HeldEvents,
  least: number,
  size: number,
): CallTable & { add(id: number, row: number): void } {
  // Row + 1: a fresh array is all zeros.
  const dense = new Int32Array(size);
  const sparse = new Map<number, number>();
  const others = new Map<number, number>();
  const call = (id: number): number => (size > 0 ? (dense[id - least] ?? 0) - 1 : (sparse.get(id) ?? 0) - 1);
  const put = (id: number, row: number): void => {
    if (size > 0) dense[id - least] = row + 1;
    else sparse.set(id, row + 1);
  };
  return {
    call,
    others,
    add(id, row) {
      const known = call(id);
      if (known < 0) put(id, row);
      else {
        others.set(id, (others.get(id) ?? 0) + 1);
        // Rows are in order of start: only of two that begin together the later one may be the outer one.
        if (start_ns[row] === start_ns[known] && dur_ns[row]! > dur_ns[known]!) put(id, row);
      }
    },
  };
}
