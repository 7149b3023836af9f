import { type CallTable, callOf, callTables, emptyTable } from './call-tables.js';
import { sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

interface Correlated {
  /** Row of the call that launched it; −1: none. */
  kernels: Int32Array;
  copies: Int32Array;
  /** Calls with the correlation id of an earlier call; the earlier one is used. */
  shared: number;
}

/**
 * The call that launched each activity, by (pid, correlation): an id is unique only within a process. A runtime call and the driver
 * call inside it may share an id: the outer one, which started first, is used.
 */
export function correlate(
  calls: InMemoryEvents,
  kernels: InMemoryEvents,
  copies: InMemoryEvents,
): Correlated {
  const tables = callTables(calls);
  const shared = [...tables.values()].reduce((sum, table) => sum + table.shared, 0);
  return { kernels: findCalls(tables, kernels), copies: findCalls(tables, copies), shared };
}

function findCalls(
  tables: Map<number, CallTable>,
  { rows, correlation, shape, shapes }: InMemoryEvents,
): Int32Array {
  const callRows = sharedInts(rows);
  const none = emptyTable();
  const tableOf = Array.from(shapes['pid'] ?? [], (pid) => tables.get(pid) ?? none);
  for (let i = 0; i < rows; i++) callRows[i] = callOf(tableOf[shape[i]!]!, correlation[i]!);
  return callRows;
}
