import type { Columns } from '../../../model/workbench.js';

/**
 * Events of one trace table (../../trace-tables.ts) in memory, in order of start: what differs from row to row, and
 * the rest once for each combination (`shapes`, columns by code; NaN is null). 28 bytes a row.
 */
export interface HeldEvents {
  rows: number;
  start_ns: Float64Array;
  dur_ns: Float64Array;
  /** NaN: none. */
  correlation: Float64Array;
  shape: Int32Array;
  /** Of copies. */
  bytes: Float64Array | null;
  shapes: Columns;
}

/**
 * A capture small enough to be held: attribution over arrays takes a fifth of the time that it takes over tables.
 * Names are in trace_names and ranges, which are few, in trace_ranges; there are no operators.
 */
export interface HeldTrace {
  kernels: HeldEvents;
  copies: HeldEvents;
  calls: HeldEvents;
}

/** Fills the arrays of a table whose rows were counted before. */
export interface HeldBuilder {
  add(start_ns: number, dur_ns: number, correlation: number, shape: number, bytes: number): void;
  /** Sorts by start what is not in order. */
  finish(shapes: Columns): HeldEvents;
}

/** @param capacity rows at most */
export function heldEvents(capacity: number, withBytes: boolean): HeldBuilder {
  const start_ns = new Float64Array(capacity);
  const dur_ns = new Float64Array(capacity);
  const correlation = new Float64Array(capacity);
  const shape = new Int32Array(capacity);
  const bytes = withBytes ? new Float64Array(capacity) : null;
  let rows = 0;
  return {
    add(start, dur, id, code, size) {
      start_ns[rows] = start;
      dur_ns[rows] = dur;
      correlation[rows] = id;
      shape[rows] = code;
      if (bytes) bytes[rows] = size;
      rows++;
    },
    finish(shapes) {
      const order = startOrder(start_ns.subarray(0, rows));
      return {
        rows,
        start_ns: inOrder(start_ns, rows, order),
        dur_ns: inOrder(dur_ns, rows, order),
        correlation: inOrder(correlation, rows, order),
        shape: order ? Int32Array.from(order, (from) => shape[from]!) : shape.subarray(0, rows),
        bytes: bytes && inOrder(bytes, rows, order),
        shapes,
      };
    },
  };
}

/** Null when they are in order; of equal ones the first stays first. */
function startOrder(start: Float64Array): Uint32Array | null {
  let sorted = true;
  for (let i = 1; i < start.length && sorted; i++) sorted = start[i]! >= start[i - 1]!;
  if (sorted) return null;
  return Uint32Array.from(start.keys()).sort((a, b) => start[a]! - start[b]! || a - b);
}

function inOrder(values: Float64Array, rows: number, order: Uint32Array | null): Float64Array {
  if (!order) return values.subarray(0, rows);
  const moved = new Float64Array(rows);
  for (let i = 0; i < rows; i++) moved[i] = values[order[i]!]!;
  return moved;
}
