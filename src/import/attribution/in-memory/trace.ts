import type { Columns } from '../../../model/workbench.js';
import type { InMemoryRanges } from './ranges.js';
import { sharedFloats, sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

/**
 * A capture small enough for memory: attribution over arrays takes a fifth of the time of attribution over tables.
 * Names are in trace_names; there are no operators.
 */
export interface InMemoryTrace {
  ranges: InMemoryRanges;
  kernels: InMemoryEvents;
  copies: InMemoryEvents;
  calls: InMemoryEvents;
}

/** Values that differ per row, in shared arrays that another thread may fill. */
export type EventArrays = Pick<InMemoryEvents, 'start_ns' | 'dur_ns' | 'correlation' | 'shape' | 'bytes'>;

/** @param rows at most */
export function eventArrays(rows: number, withBytes: boolean): EventArrays {
  return {
    start_ns: sharedFloats(rows),
    dur_ns: sharedFloats(rows),
    correlation: sharedFloats(rows),
    shape: sharedInts(rows),
    bytes: withBytes ? sharedFloats(rows) : null,
  };
}

/** The first `rows` of the arrays. @param sorted whether they are known to be sorted by start; otherwise they are sorted here */
export function sortedEvents(
  arrays: EventArrays,
  rows: number,
  sorted: boolean,
  shapes: Columns,
): InMemoryEvents {
  const { start_ns, dur_ns, correlation, shape, bytes } = arrays;
  if (sorted)
    return {
      rows,
      start_ns: start_ns.subarray(0, rows),
      dur_ns: dur_ns.subarray(0, rows),
      correlation: correlation.subarray(0, rows),
      shape: shape.subarray(0, rows),
      bytes: bytes && bytes.subarray(0, rows),
      shapes,
    };
  const order = startOrder(start_ns.subarray(0, rows));
  return {
    rows,
    start_ns: reorder(start_ns, sharedFloats(rows), order),
    dur_ns: reorder(dur_ns, sharedFloats(rows), order),
    correlation: reorder(correlation, sharedFloats(rows), order),
    shape: reorder(shape, sharedInts(rows), order),
    bytes: bytes && reorder(bytes, sharedFloats(rows), order),
    shapes,
  };
}

/** Stable for equal keys. */
function startOrder(start: Float64Array): Uint32Array {
  return Uint32Array.from(start.keys()).sort((a, b) => start[a]! - start[b]! || a - b);
}

function reorder<T extends Float64Array | Int32Array>(values: T, into: T, order: Uint32Array): T {
  for (let i = 0; i < order.length; i++) into[i] = values[order[i]!]!;
  return into;
}
