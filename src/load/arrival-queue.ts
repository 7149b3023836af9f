import { performance } from 'node:perf_hooks';

/** Receives the bytes of one stream in arrival order; bytes are valid only during the call. */
type Take = (bytes: Buffer, from: number, to: number, atNs: number) => void;

export interface ArrivalQueue {
  /** Copies bytes[from, to) and passes them to `take` later. */
  put(take: Take, bytes: Buffer, from: number, to: number, atNs: number): void;
  /** Calls `done` after all earlier entries. */
  after(done: () => void): void;
}

/** Parsing runs for this long, then sockets get their turn, so that no time stamp is later than this. */
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
 * Bytes that were stamped but not yet parsed. They are parsed in slices in the event loop's check phase, which follows
 * the poll phase in which all ready sockets were read and stamped. Bytes are stored in a slab and entries are reused,
 * so that a chunk leaves nothing for the garbage collector, which would delay stamps.
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
    const deadlineMs = performance.now() + sliceMs;
    try {
      while (head < tail) {
        const { take, done, slab: bytes, from, to, atNs } = entries[head]!;
        entries[head]!.slab = slab;
        head++;
        if (take !== null) take(bytes, from, to, atNs);
        else done?.();
        if (performance.now() >= deadlineMs) break;
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
      const added = entry();
      added.take = take;
      added.slab = slab;
      added.from = filled;
      filled += size;
      added.to = filled;
      added.atNs = atNs;
    },
    after(done) {
      const next = entry();
      next.take = null;
      next.done = done;
    },
  };
}
