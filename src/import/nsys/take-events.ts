import type { Batch, RowTaker } from '../../model/workbench.js';
import type { EventArrays } from '../attribution/in-memory/trace.js';
import { UnreadableRows } from './damage.js';
import { maxCopyBytes } from '../trace-tables.js';
import { shapeCodes } from './shape-codes.js';

/** Destination of the rows of one kind. */
export interface EventTarget {
  into: EventArrays;
  /** Destination row of the first row. */
  first_row: number;
  /** Code of the first combination: codes are numbered across all kinds of a table. */
  first_code: number;
  /** Added to all times. */
  offset_ns: number;
  /** A row with a time of this size or more is invalid. */
  limit_ns: number;
}

/** Rows of one kind that have been read. */
export interface EventsRead {
  /** Rows in the arrays, consecutive from `first_row`. */
  rows: number;
  /** Dropped rows: they end before they start, or have an impossible time. */
  impossible: number;
  /** Copies and memsets with an impossible size, stored without one. */
  oversized: number;
  /** The rows in the arrays are sorted by start. */
  sorted: boolean;
  /** Per combination, in code order: its key, first row, and number of rows (invalid ones included). */
  keys: Float64Array;
  first_rows: Float64Array;
  counts: Float64Array;
}

/** Takes rows of start, end, correlationId, shape (the key of a combination) and, for copies, bytes. */
export function takeEvents({
  into,
  first_row,
  first_code,
  offset_ns,
  limit_ns,
}: EventTarget): RowTaker<EventsRead> {
  const capacity = into.start_ns.length;
  const codes = shapeCodes();
  const keys: number[] = [];
  const firstRows: number[] = [];
  const counts: number[] = [];
  let rowsRead = 0;
  let row = first_row;
  let impossible = 0;
  let oversized = 0;
  let sorted = true;
  let latest_ns = Number.NEGATIVE_INFINITY;

  function addKey(key: number, firstRow: number): number {
    const code = first_code + keys.length;
    codes.set(key, code);
    keys.push(key);
    firstRows.push(firstRow);
    counts.push(0);
    return code;
  }

  return {
    take({ rows, columns }: Batch) {
      if (row + rows > capacity) throw new UnreadableRows('A table has more rows than its file declares.');
      const [start, end, id] = [columns['start']!, columns['end']!, columns['correlationId']!];
      const key = columns['shape']!;
      const bytes = columns['bytes'];
      for (let inputRow = 0; inputRow < rows; inputRow++) {
        let code = codes.get(key[inputRow]!);
        if (code < 0) code = addKey(key[inputRow]!, rowsRead + inputRow);
        counts[code - first_code]!++;
        const from = start[inputRow]!;
        const to = end[inputRow]!;
        if (!(to >= from && from > -limit_ns && to < limit_ns)) {
          impossible++;
          continue;
        }
        if (from < latest_ns) sorted = false;
        latest_ns = from;
        into.start_ns[row] = from + offset_ns;
        into.dur_ns[row] = to - from;
        // Larger ids do not fit a double: the row then has no id and becomes an orphan.
        into.correlation[row] = Math.abs(id[inputRow]!) < 2 ** 53 ? id[inputRow]! : Number.NaN;
        into.shape[row] = code;
        if (into.bytes) {
          const size = bytes ? bytes[inputRow]! : Number.NaN;
          const isPossible = size >= 0 && size <= maxCopyBytes;
          if (!isPossible && size === size) oversized++;
          into.bytes[row] = isPossible ? size : Number.NaN;
        }
        row++;
      }
      rowsRead += rows;
    },
    result: () => ({
      rows: row - first_row,
      impossible,
      oversized,
      sorted,
      keys: Float64Array.from(keys),
      first_rows: Float64Array.from(firstRows),
      counts: Float64Array.from(counts),
    }),
  };
}
