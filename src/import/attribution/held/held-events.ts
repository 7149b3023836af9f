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
