import { type ImpossibleCounts, isNoDevice, judgeLead } from '../impossible.js';
import { sharedFloats, sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

/** Activities that start together are compared with at most this many others. */
const comparedRows = 64;

/**
 * Applies the rules of ../impossible.ts in one pass over kernels or copies.
 * @param call row of the call that launched each; −1: none
 * @returns both without the dropped rows; the same arrays when nothing is dropped
 */
export function leaveOut(
  events: InMemoryEvents,
  call: Int32Array,
  calls: InMemoryEvents,
  counts: ImpossibleCounts,
): { events: InMemoryEvents; call: Int32Array } {
  const { rows, start_ns } = events;
  const callStart = calls.start_ns;
  const noDevice = Uint8Array.from(events.shapes['device'] ?? [], (device) => Number(isNoDevice(device)));
  let out: Uint8Array | null = null;
  let together = 0;
  for (let i = 0; i < rows; i++) {
    const start = start_ns[i]!;
    if (i === 0 || start !== start_ns[i - 1]) together = i;
    if (noDevice[events.shape[i]!]) {
      (out ??= new Uint8Array(rows))[i] = 1;
      counts.noDevice++;
      continue;
    }
    if (together < i && isRepeated(events, i, Math.max(together, i - comparedRows))) {
      (out ??= new Uint8Array(rows))[i] = 1;
      counts.repeated++;
      continue;
    }
    const from = call[i]!;
    if (from >= 0 && judgeLead(callStart[from]! - start, counts)) (out ??= new Uint8Array(rows))[i] = 1;
  }
  return out === null ? { events, call } : without(events, call, out);
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

function without(events: InMemoryEvents, call: Int32Array, out: Uint8Array): ReturnType<typeof leaveOut> {
  const rows = out.reduce((remaining, value) => remaining + 1 - value, 0);
  const moved = <T extends Float64Array | Int32Array>(from: T, into: T): T => {
    for (let i = 0, row = 0; i < out.length; i++) if (out[i] === 0) into[row++] = from[i]!;
    return into;
  };
  return {
    events: {
      rows,
      start_ns: moved(events.start_ns, sharedFloats(rows)),
      dur_ns: moved(events.dur_ns, sharedFloats(rows)),
      correlation: moved(events.correlation, sharedFloats(rows)),
      shape: moved(events.shape, sharedInts(rows)),
      bytes: events.bytes && moved(events.bytes, sharedFloats(rows)),
      shapes: events.shapes,
    },
    call: moved(call, sharedInts(rows)),
  };
}
