/**
 * Parquet's encodings of values (https://parquet.apache.org/docs/file-format/data-pages/encodings/) over doubles that
 * hold integers exact to 2^53. Each function writes at a place of a buffer and returns the place behind it.
 */
export interface Output {
  bytes: Uint8Array;
  view: DataView;
}

/** @param size bytes; page of `rows` values: outputSize(rows) */
export function createOutput(size: number): Output {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}

/** Enough for any encoding of so many values, and their definition levels. */
export const outputSize = (rows: number): number => rows * 9 + 4096;

const blockValues = 128;
const miniValues = 32;

/** DELTA_BINARY_PACKED: what rises slowly or varies little takes as many bits as its differences do. */
export function deltaPacked(out: Output, at: number, values: Float64Array, count: number): number {
  at = varint(out, at, blockValues);
  at = varint(out, at, blockValues / miniValues);
  at = varint(out, at, count);
  at = signedVarint(out, at, values[0]!);
  const deltas = new Float64Array(blockValues);
  const narrow = new Int32Array(blockValues);
  for (let from = 1; from < count; from += blockValues) {
    const n = Math.min(blockValues, count - from);
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    let before = values[from - 1]!;
    for (let i = 0; i < n; i++) {
      const value = values[from + i]!;
      const delta = value - before;
      before = value;
      deltas[i] = delta;
      if (delta < least) least = delta;
      if (delta > most) most = delta;
    }
    deltas.fill(least, n);
    at = signedVarint(out, at, least);
    const widths = at;
    at += blockValues / miniValues;
    const wide = most - least >= 2 ** 32;
    for (let mini = 0; mini < blockValues; mini += miniValues) {
      let width: number;
      if (wide) {
        width = aboveWide(deltas, mini, least);
        at = packedWide(out, at, deltas, mini, miniValues, width);
      } else {
        width = above(deltas, mini, least, narrow);
        at = packed(out, at, narrow, mini, miniValues, width);
      }
      out.bytes[widths + mini / miniValues] = width;
    }
  }
  return at;
}

/** What a part of a block is above its least, in 32 bits each. @returns how many of them hold all */
function above(deltas: Float64Array, mini: number, least: number, into: Int32Array): number {
  let bits = 0;
  for (let i = mini; i < mini + miniValues; i++) {
    // Above 2^31 it is negative as a 32-bit integer: the same bits.
    const value = (deltas[i]! - least) | 0;
    into[i] = value;
    bits |= value;
  }
  return 32 - Math.clz32(bits);
}

function aboveWide(deltas: Float64Array, mini: number, least: number): number {
  let most = 0;
  for (let i = mini; i < mini + miniValues; i++) {
    deltas[i]! -= least;
    most = Math.max(most, deltas[i]!);
  }
  return bitWidth(most);
}

/** Bits that hold 0 … value. */
export function bitWidth(value: number): number {
  return value < 2 ** 32 ? 32 - Math.clz32(value) : 32 + bitWidth(Math.floor(value / 2 ** 32));
}

/** So many values of `width` bits each, 32 at most, the lowest bit first; `count` is a multiple of 8. */
function packed(
  { bytes, view }: Output,
  at: number,
  values: Int32Array,
  from: number,
  count: number,
  width: number,
): number {
  if (width === 0) return at;
  const end = at + (count * width) / 8;
  let word = 0;
  let used = 0;
  for (let i = from; i < from + count; i++) {
    const value = values[i]!;
    word |= value << used;
    used += width;
    if (used >= 32) {
      view.setInt32(at, word, true);
      at += 4;
      used -= 32;
      word = used > 0 ? value >>> (width - used) : 0;
    }
  }
  for (; at < end; word >>>= 8) bytes[at++] = word & 255;
  return end;
}

function packedWide(
  out: Output,
  at: number,
  values: Float64Array,
  from: number,
  count: number,
  width: number,
): number {
  let rest = 0n;
  let used = 0;
  for (let i = from; i < from + count; i++) {
    rest |= BigInt(values[i]!) << BigInt(used);
    used += width;
    for (; used >= 8; used -= 8) {
      out.bytes[at++] = Number(rest & 255n);
      rest >>= 8n;
    }
  }
  return at;
}

/** A run of the hybrid of runs and packed values: the same value `count` times. */
export function repeated(out: Output, at: number, value: number, count: number, width: number): number {
  at = varint(out, at, count * 2);
  for (let bits = 0; bits < width; bits += 8) out.bytes[at++] = (value >>> bits) & 255;
  return at;
}

/** A packed part of the hybrid; `values` must reach to the next multiple of 8. */
export function packedRun(out: Output, at: number, values: Int32Array, count: number, width: number): number {
  const groups = Math.ceil(count / 8);
  at = varint(out, at, groups * 2 + 1);
  return packed(out, at, values, 0, groups * 8, width);
}

export function varint(out: Output, at: number, value: number): number {
  let rest = value;
  while (rest > 127) {
    out.bytes[at++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  out.bytes[at++] = rest;
  return at;
}

/** Zigzag: small numbers of either sign are short. */
function signedVarint(out: Output, at: number, value: number): number {
  if (Math.abs(value) < 2 ** 52) return varint(out, at, value < 0 ? -2 * value - 1 : 2 * value);
  let rest = value < 0 ? -2n * BigInt(value) - 1n : 2n * BigInt(value);
  for (; rest > 127n; rest >>= 7n) out.bytes[at++] = Number(rest & 127n) | 128;
  out.bytes[at++] = Number(rest);
  return at;
}
