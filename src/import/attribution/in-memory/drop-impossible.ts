import { type ImpossibleCounts, isImpossibleDevice, judgeLead } from '../impossible.js';
import { sharedFloats, sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

/** Activities that start together are compared with at most this many others. */
const comparedRows = 64;

/**
 * Applies the rules of ../impossible.ts in one pass over kernels or copies.
 * @param call row of the call that launched each; −1: none
 * @returns events and calls without the dropped rows; the same arrays when nothing is dropped
 */
export function dropImpossible(
  events: InMemoryEvents,
  call: Int32Array,
  calls: InMemoryEvents,
  counts: ImpossibleCounts,
): { events: InMemoryEvents; call: Int32Array } {
  const { rows, start_ns } = events;
  const callStart = calls.start_ns;
  const isImpossible = Uint8Array.from(events.shapes['device'] ?? [], (device) =>
    Number(isImpossibleDevice(device)),
  );
  let dropped: Uint8Array | null = null;
  let firstOfStart = 0;
  for (let i = 0; i < rows; i++) {
    const start = start_ns[i]!;
    if (i === 0 || start !== start_ns[i - 1]) firstOfStart = i;
    if (isImpossible[events.shape[i]!]) {
      (dropped ??= new Uint8Array(rows))[i] = 1;
      counts.impossibleDevice++;
      continue;
    }
    if (firstOfStart < i && isRepeated(events, i, Math.max(firstOfStart, i - comparedRows))) {
      (dropped ??= new Uint8Array(rows))[i] = 1;
      counts.repeated++;
      continue;
    }
    const from = call[i]!;
    if (from >= 0 && judgeLead(callStart[from]! - start, counts)) (dropped ??= new Uint8Array(rows))[i] = 1;
  }
  return dropped === null ? { events, call } : withoutRows(events, call, dropped);
}

/** Whether one of the rows from `from` on, all starting together with row `row`, is identical. */
function isRepeated(
  { dur_ns, shape, correlation, bytes }: InMemoryEvents,
  row: number,
  from: number,
): boolean {
  for (let i = row - 1; i >= from; i--) {
    if (
      dur_ns[i] === dur_ns[row] &&
      shape[i] === shape[row] &&
      Object.is(correlation[i], correlation[row]) &&
      (bytes === null || Object.is(bytes[i], bytes[row]))
    )
      return true;
  }
  return false;
}

function withoutRows(
  events: InMemoryEvents,
  call: Int32Array,
  dropped: Uint8Array,
): ReturnType<typeof dropImpossible> {
  const rows = dropped.reduce((remaining, value) => remaining + 1 - value, 0);
  const copyRemaining = <T extends Float64Array | Int32Array>(from: T, into: T): T => {
    for (let i = 0, row = 0; i < dropped.length; i++) if (dropped[i] === 0) into[row++] = from[i]!;
    return into;
  };
  return {
    events: {
      rows,
      start_ns: copyRemaining(events.start_ns, sharedFloats(rows)),
      dur_ns: copyRemaining(events.dur_ns, sharedFloats(rows)),
      correlation: copyRemaining(events.correlation, sharedFloats(rows)),
      shape: copyRemaining(events.shape, sharedInts(rows)),
      bytes: events.bytes && copyRemaining(events.bytes, sharedFloats(rows)),
      shapes: events.shapes,
    },
    call: copyRemaining(call, sharedInts(rows)),
  };
}
