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

export type Chunk = Pick<HeldEvents, 'rows' | 'start_ns' | 'dur_ns' | 'correlation' | 'shape' | 'bytes'>;

/** Chunks as they were read, put together and sorted by start where they are not. */
export function holdEvents(chunks: readonly Chunk[], shapes: Columns, withBytes: boolean): HeldEvents {
  const rows = chunks.reduce((sum, chunk) => sum + chunk.rows, 0);
  const start_ns = joined(chunks, rows, (chunk) => chunk.start_ns);
  const order = startOrder(start_ns);
  const column = (of: (chunk: Chunk) => Float64Array) => inOrder(joined(chunks, rows, of), order);
  const shape = new Int32Array(rows);
  let at = 0;
  for (const chunk of chunks) {
    shape.set(chunk.shape.subarray(0, chunk.rows), at);
    at += chunk.rows;
  }
  return {
    rows,
    start_ns: inOrder(start_ns, order),
    dur_ns: column((chunk) => chunk.dur_ns),
    correlation: column((chunk) => chunk.correlation),
    shape: order ? Int32Array.from(order, (from) => shape[from]!) : shape,
    bytes: withBytes ? column((chunk) => chunk.bytes!) : null,
    shapes,
  };
}

function joined(chunks: readonly Chunk[], rows: number, of: (chunk: Chunk) => Float64Array): Float64Array {
  const whole = new Float64Array(rows);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(of(chunk).subarray(0, chunk.rows), at);
    at += chunk.rows;
  }
  return whole;
}

/** Null when they are in order; of equal ones the first stays first. */
function startOrder(start: Float64Array): Uint32Array | null {
  let sorted = true;
  for (let i = 1; i < start.length && sorted; i++) sorted = start[i]! >= start[i - 1]!;
  if (sorted) return null;
  return Uint32Array.from(start.keys()).sort((a, b) => start[a]! - start[b]! || a - b);
}

function inOrder(values: Float64Array, order: Uint32Array | null): Float64Array {
  if (!order) return values;
  const moved = new Float64Array(values.length);
  for (let i = 0; i < order.length; i++) moved[i] = values[order[i]!]!;
  return moved;
}
