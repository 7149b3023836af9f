import type { Columns } from '../../../model/workbench.js';

/**
 * Events of one trace table (../../trace-tables.ts) in memory, sorted by start: the values that differ per row, and the
 * rest once per combination (`shapes`, columns by code; NaN is null). 28 bytes per row, 36 for copies.
 */
export interface InMemoryEvents {
  rows: number;
  start_ns: Float64Array;
  dur_ns: Float64Array;
  /** NaN: none. */
  correlation: Float64Array;
  shape: Int32Array;
  /** Copies only. */
  bytes: Float64Array | null;
  shapes: Columns;
}
