import { performance } from 'node:perf_hooks';

/** Takes the bytes of one stream in the order in which they came; the bytes are valid during the call only. */
type Take = (bytes: Buffer, from: number, to: number, atNs: number) => void;

export interface ArrivalQueue {
  /** Copies bytes[from, to) and gives them to `take` later. */
  put(take: Take, bytes: Buffer, from: number, to: number, atNs: number): void;
  /** Calls `done` after everything that was put before. */
  after(done: () => void): void;
}

/** Parsing goes on for so long, then sockets get their turn: no stamp waits longer for it. */
const sliceMs = 0.2;
const slabBytes = 1 << 20;

interface Arrival {
  take: Take | null;
  done: (() => void) | null;
  slab: Buffer;
  from: number;
  to: number;
  atNs: number;
}

/**
 * Bytes that were stamped and not yet parsed. They are parsed in the event loop's check phase, which follows the poll
 * phase in which all sockets that are ready were read and stamped, and in slices. The bytes lie one after the other in a
 * slab, and the entries are used again: a chunk leaves nothing for the garbage collector: its pauses delay stamps.
 */
export function arrivalQueue(): ArrivalQueue {
  const entries: Arrival[] = [];
  let [head, tail, filled] = [0, 0, 0];
  let slab = Buffer.allocUnsafeSlow(slabBytes);
  let scheduled = false;

  function entry(): Arrival {
    if (tail === entries.length) {
      entries.push({ take: null, done: null, slab, from: 0, to: 0, atNs: 0 });
    }
    if (!scheduled) {
      scheduled = true;
      setImmediate(parse);
    }
    return entries[tail++]!;
  }

  function parse(): void {
    const until = performance.now() + sliceMs;
    try {
      while (head < tail) {
        const { take, done, slab: bytes, from, to, atNs } = entries[head]!;
        entries[head]!.slab = slab;
        head++;
        if (take !== null) take(bytes, from, to, atNs);
        else done?.();
        if (performance.now() >= until) break;
      }
    } finally {
      if (head === tail) {
        [head, tail, filled] = [0, 0, 0];
        scheduled = false;
      } else setImmediate(parse);
    }
  }

  return {
    put(take, bytes, from, to, atNs) {
      const size = to - from;
      if (filled + size > slab.length) {
        slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, size));
        filled = 0;
      }
      bytes.copy(slab, filled, from, to);
      const one = entry();
      one.take = take;
      one.slab = slab;
      one.from = filled;
      filled += size;
      one.to = filled;
      one.atNs = atNs;
    },
    after(done) {
      const one = entry();
      one.take = null;
      one.done = done;
    },
  };
}
