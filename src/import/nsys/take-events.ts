import type { Batch, RowTaker } from '../../model/workbench.js';
import type { EventArrays } from '../attribution/held/held-trace.js';
import { UnreadableRows } from './damage.js';
import { mostCopyBytes } from '../trace-tables.js';
import { shapeCodes } from './shape-codes.js';

/** Where the rows of one kind go. */
export interface EventTarget {
  into: EventArrays;
  /** The row that the first one goes to. */
  first_row: number;
  /** The code of the first combination: codes are numbered through all kinds of a table. */
  first_code: number;
  /** Added to every time. */
  offset_ns: number;
  /** A row with a time of this size or more is unsound. */
  limit_ns: number;
}

/** What has been read of one kind. */
export interface EventsRead {
  /** Rows in the arrays, one after the other from `first_row` on. */
  rows: number;
  /** Rows left out: they end before they begin, or at no time of a capture. */
  unsound: number;
  /** Copies of a size that cannot be, which have none. */
  oversized: number;
  /** None of the rows in the arrays begins before the one before it. */
  sorted: boolean;
  /** Of each combination, in the order of their codes: what it is known by, its first row, and its rows (unsound ones count). */
  keys: Float64Array;
  first_rows: Float64Array;
  counts: Float64Array;
}

/** Takes rows of start, end, correlationId, shape (the key of a combination) and, of copies, bytes. */
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
  let seen = 0;
  let row = first_row;
  let unsound = 0;
  let oversized = 0;
  let sorted = true;
  let latest_ns = Number.NEGATIVE_INFINITY;

  function meet(key: number, at: number): number {
    const code = first_code + keys.length;
    codes.set(key, code);
    keys.push(key);
    firstRows.push(at);
    counts.push(0);
    return code;
  }

  return {
    take({ rows, columns }: Batch) {
      if (row + rows > capacity) throw new UnreadableRows('A table has more rows than its file says.');
      const [start, end, id] = [columns['start']!, columns['end']!, columns['correlationId']!];
      const key = columns['shape']!;
      const bytes = columns['bytes'];
      for (let r = 0; r < rows; r++) {
        let code = codes.get(key[r]!);
        if (code < 0) code = meet(key[r]!, seen + r);
        counts[code - first_code]!++;
        const from = start[r]!;
        const to = end[r]!;
        if (!(to >= from && from > -limit_ns && to < limit_ns)) {
          unsound++;
          continue;
        }
        if (from < latest_ns) sorted = false;
        latest_ns = from;
        into.start_ns[row] = from + offset_ns;
        into.dur_ns[row] = to - from;
        // A double holds no larger one: the row has none then, and counts among the orphans.
        into.correlation[row] = Math.abs(id[r]!) < 2 ** 53 ? id[r]! : Number.NaN;
        into.shape[row] = code;
        if (into.bytes) {
          const size = bytes ? bytes[r]! : Number.NaN;
          const possible = size >= 0 && size <= mostCopyBytes;
          if (!possible && size === size) oversized++;
          into.bytes[row] = possible ? size : Number.NaN;
        }
        row++;
      }
      seen += rows;
    },
    taken: () => ({
      rows: row - first_row,
      unsound,
      oversized,
      sorted,
      keys: Float64Array.from(keys),
      first_rows: Float64Array.from(firstRows),
      counts: Float64Array.from(counts),
    }),
  };
}
