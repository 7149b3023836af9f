import { maxNameLength } from '../trace-tables.js';
import { decodeString } from './json-bytes.js';

/** Kind of a byte span: determines how its text is decoded. */
export const spanKinds = { name: 0, json: 1, dims: 2 } as const;
export type SpanKind = (typeof spanKinds)[keyof typeof spanKinds];

interface Interner {
  /** @returns the code of the bytes [from, to) as `kind`; equal bytes have equal codes */
  code(bytes: Uint8Array, from: number, to: number, kind: SpanKind): number;
  /** Texts of the codes created since the last call, in order. */
  takeNew(): { texts: string[]; repaired: number; oddShapes: number };
}

/** All bytes of a short span are hashed, this many of a long one: kernel names can be kilobytes long. */
const hashedBytes = 64;

/** Open addressing over the bytes themselves: a text is decoded once, on its first occurrence. */
export function createInterner(): Interner {
  let arena = new Uint8Array(1 << 18);
  let usedBytes = 0;
  let slots = new Int32Array(1 << 12).fill(-1);
  let offsets = new Int32Array(1 << 11);
  let hashes = new Int32Array(1 << 11);
  let count = 0;
  offsets[0] = 0;
  let texts: string[] = [];
  let repaired = 0;
  let oddShapes = 0;

  function hash(bytes: Uint8Array, from: number, to: number, kind: SpanKind): number {
    const length = to - from;
    let hashed = length * 3 + kind;
    if (length <= hashedBytes) {
      for (let p = from; p < to; p++) hashed = Math.imul(hashed ^ bytes[p]!, 0x01000193);
    } else {
      const step = length / hashedBytes;
      for (let i = 0; i < hashedBytes; i++)
        hashed = Math.imul(hashed ^ bytes[from + ((i * step) | 0)]!, 0x01000193);
    }
    return hashed ^ (hashed >>> 15);
  }

  function isEntry(entry: number, bytes: Uint8Array, from: number, to: number, kind: SpanKind): boolean {
    let entryByte = offsets[entry]!;
    // One byte for the kind, then the span.
    if (offsets[entry + 1]! - entryByte !== to - from + 1 || arena[entryByte++] !== kind) return false;
    for (let p = from; p < to; p++) if (arena[entryByte++] !== bytes[p]) return false;
    return true;
  }

  function add(bytes: Uint8Array, from: number, to: number, kind: SpanKind, hashed: number): number {
    const size = to - from + 1;
    while (usedBytes + size > arena.length) arena = copyInto(arena, new Uint8Array(arena.length * 2));
    if (count + 2 > offsets.length) {
      offsets = copyInto(offsets, new Int32Array(offsets.length * 2));
      hashes = copyInto(hashes, new Int32Array(hashes.length * 2));
    }
    arena[usedBytes] = kind;
    arena.set(bytes.subarray(from, to), usedBytes + 1);
    usedBytes += size;
    hashes[count] = hashed;
    offsets[count + 1] = usedBytes;
    texts.push(decode(Buffer.from(arena.buffer, usedBytes - size + 1, size - 1).toString('utf8'), kind));
    return count++;
  }

  function decode(text: string, kind: SpanKind): string {
    if (kind === spanKinds.name) return decodeString(text, () => repaired++).slice(0, maxNameLength);
    if (kind === spanKinds.dims) return text.replaceAll(/[[\]\s]/g, '');
    try {
      let odd = 0;
      const value = JSON.stringify(
        JSON.parse(text, (_, value: unknown) =>
          typeof value === 'number' && !(Number.isSafeInteger(value) && value >= 0) ? (odd++, null) : value,
        ),
      );
      oddShapes += Math.min(odd, 1);
      return value;
    } catch {
      // Not JSON, or arrays nested too deeply for the parser: the shape is unknown.
      oddShapes++;
      return '[]';
    }
  }

  function rehash(): void {
    slots = new Int32Array(slots.length * 2).fill(-1);
    const mask = slots.length - 1;
    for (let entry = 0; entry < count; entry++) {
      let slot = hashes[entry]! & mask;
      while (slots[slot] !== -1) slot = (slot + 1) & mask;
      slots[slot] = entry;
    }
  }

  return {
    code(bytes, from, to, kind) {
      const hashed = hash(bytes, from, to, kind);
      const mask = slots.length - 1;
      let slot = hashed & mask;
      for (;;) {
        const entry = slots[slot]!;
        if (entry === -1) break;
        if (hashes[entry] === hashed && isEntry(entry, bytes, from, to, kind)) return entry;
        slot = (slot + 1) & mask;
      }
      const entry = add(bytes, from, to, kind, hashed);
      slots[slot] = entry;
      if (count * 2 > slots.length) rehash();
      return entry;
    },
    takeNew() {
      const result = { texts, repaired, oddShapes };
      texts = [];
      repaired = oddShapes = 0;
      return result;
    },
  };
}

function copyInto<T extends Uint8Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
