import type { Columns } from '../../../model/workbench.js';
import type { InMemoryEvents } from './events.js';

/** Ranges in memory, in the order of the file: times per range, the rest once per combination (NaN is null). */
export interface InMemoryRanges {
  rows: number;
  start_ns: Float64Array;
  /** NaN: never closed. */
  end_ns: Float64Array;
  /** Per range: its combination, an index into the columns of `shapes`. */
  shape: Int32Array;
  /** pid, tid, rank, name, process_wide; each combination has a row. */
  shapes: Columns;
}

/** A range that was never closed ends with the last event of its thread. @returns the number of such ranges */
export function closeRanges(ranges: InMemoryRanges, calls: InMemoryEvents): number {
  const { rows, start_ns: start, end_ns: end, shape } = ranges;
  const unclosed: number[] = [];
  for (let i = 0; i < rows; i++) if (Number.isNaN(end[i]!)) unclosed.push(i);
  if (unclosed.length === 0) return 0;
  // The thread of each combination; calls and ranges of one thread share an object.
  const threads = new Map<string, { lastNs: number }>();
  const threadsOf = ({ shapes }: { shapes: Columns }) =>
    Array.from(shapes['pid'] ?? [], (pid, code) => {
      const key = `${pid},${shapes['tid']![code]}`;
      if (!threads.has(key)) threads.set(key, { lastNs: Number.NEGATIVE_INFINITY });
      return threads.get(key)!;
    });
  const callThreads = threadsOf(calls);
  const rangeThreads = threadsOf(ranges);
  for (let i = 0; i < calls.rows; i++) {
    const thread = callThreads[calls.shape[i]!]!;
    thread.lastNs = Math.max(thread.lastNs, calls.start_ns[i]! + calls.dur_ns[i]!);
  }
  for (let i = 0; i < rows; i++) {
    if (ranges.shapes['process_wide']![shape[i]!] === 1) continue;
    const thread = rangeThreads[shape[i]!]!;
    thread.lastNs = Math.max(thread.lastNs, Number.isNaN(end[i]!) ? start[i]! : end[i]!);
  }
  for (const row of unclosed) {
    const { lastNs } = rangeThreads[shape[row]!]!;
    end[row] = lastNs === Number.NEGATIVE_INFINITY ? start[row]! : lastNs;
  }
  return unclosed.length;
}

/** Row order by start, then longest first, then as in the file; null when already sorted. */
export function rangeOrder({ rows, start_ns: start, end_ns: end }: InMemoryRanges): Uint32Array | null {
  let sorted = true;
  for (let i = 1; i < rows && sorted; i++)
    sorted = start[i]! > start[i - 1]! || (start[i] === start[i - 1] && end[i]! <= end[i - 1]!);
  if (sorted) return null;
  return Uint32Array.from({ length: rows }, (_, row) => row).sort(
    (a, b) => start[a]! - start[b]! || end[b]! - end[a]! || a - b,
  );
}
