import { type CallTable, callOf, callTables, emptyTable } from './call-tables.js';
import { sharedInts } from './shared-arrays.js';
import type { HeldEvents } from './held-events.js';

export interface Correlated {
  /** Row of the call that launched it; −1: none. */
  kernels: Int32Array;
  copies: Int32Array;
  /** Calls that have the id of another one, which counts. */
  shared: number;
}

/**
 * Activities find their call by (pid, correlation): an id alone is unique only within a process. A runtime call and the
 * driver call inside it may share one: the outer one, which began first, counts.
 */
export function correlate(calls: HeldEvents, kernels: HeldEvents, copies: HeldEvents): Correlated {
  const pid = onlyProcess(calls);
  if (pid !== null && increasing(calls.correlation, calls.rows)) {
    const ids = calls.correlation.subarray(0, calls.rows);
    return { kernels: findInOrder(ids, pid, kernels), copies: findInOrder(ids, pid, copies), shared: 0 };
  }
  const tables = callTables(calls);
  const shared = [...tables.values()].reduce((sum, table) => sum + table.shared, 0);
  return { kernels: find(tables, kernels), copies: find(tables, copies), shared };
}

/** Null when there are several. */
function onlyProcess({ shapes }: HeldEvents): number | null {
  const pids = new Set(shapes['pid'] ?? []);
  return pids.size === 1 ? [...pids][0]! : null;
}

/** One thread that launches everything numbers its calls in order. */
function increasing(ids: Float64Array, rows: number): boolean {
  let before = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < rows; i++) {
    const id = ids[i]!;
    if (!(id > before)) return false;
    before = id;
  }
  return true;
}

/** @param ids of calls, each greater than the one before */
function findInOrder(ids: Float64Array, pid: number, events: HeldEvents): Int32Array {
  const { rows, correlation, shape, shapes } = events;
  const found = sharedInts(rows);
  const known = Uint8Array.from(shapes['pid'] ?? [], (own) => Number(Object.is(own, pid)));
  // Mostly the call is as many rows further as its id is greater.
  let row = 0;
  for (let i = 0; i < rows; i++) {
    const id = correlation[i]!;
    const guess = row + id - ids[row]!;
    if (known[shape[i]!] === 0 || Number.isNaN(id)) found[i] = -1;
    else if (ids[guess] === id) found[i] = row = guess;
    else {
      const place = firstNotBelow(ids, id, row);
      found[i] = place < ids.length && ids[place] === id ? place : -1;
      if (place < ids.length) row = place;
    }
  }
  return found;
}

/** By halving what lies between steps that double, from `from` on. */
function firstNotBelow(ids: Float64Array, id: number, from: number): number {
  let low = from;
  let high = from;
  if (ids[from]! < id) {
    for (let step = 1; high < ids.length && ids[high]! < id; step *= 2) {
      low = high + 1;
      high += step;
    }
    high = Math.min(high, ids.length);
  } else {
    for (let step = 1; low > 0 && ids[low]! >= id; step *= 2) {
      high = low;
      low = Math.max(0, low - step);
    }
  }
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ids[middle]! < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

function find(tables: Map<number, CallTable>, { rows, correlation, shape, shapes }: HeldEvents): Int32Array {
  const found = sharedInts(rows);
  const none = emptyTable();
  const tableOf = Array.from(shapes['pid'] ?? [], (pid) => tables.get(pid) ?? none);
  for (let i = 0; i < rows; i++) found[i] = callOf(tableOf[shape[i]!]!, correlation[i]!);
  return found;
}
