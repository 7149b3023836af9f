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

/** A block of DELTA_BINARY_PACKED with one width for its values: with four, files are 1 % smaller and take 1.6x as long. */
const blockValues = 128;

/** DELTA_BINARY_PACKED: what rises slowly or varies little takes as many bits as its differences do. */
export function deltaPacked(out: Output, at: number, values: Float64Array, count: number): number {
  at = varint(out, at, blockValues);
  at = varint(out, at, 1);
  at = varint(out, at, count);
  at = signedVarint(out, at, values[0]!);
  for (let from = 1; from < count; from += blockValues) {
    const to = Math.min(from + blockValues, count);
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    for (let i = from; i < to; i++) {
      const delta = values[i]! - values[i - 1]!;
      if (delta >= least) {
        if (delta > most) most = delta;
      } else {
        least = delta;
        if (delta > most) most = delta;
      }
    }
    const width = bitWidth(most - least);
    at = signedVarint(out, at, least);
    out.bytes[at++] = width;
    if (width === 0) continue;
    const full = at + (blockValues * width) / 8;
    if (width <= 32) at = differences(out, at, values, from, to, least, width);
    else at = wideDifferences(out, at, values, from, to, least, width);
    // The last block is filled up.
    out.bytes.fill(0, at, full);
    at = full;
  }
  return at;
}

/** What the differences from … to are above the least, `width` bits each, 32 at most, the lowest bit first. */
function differences(
  { bytes, view }: Output,
  at: number,
  values: Float64Array,
  from: number,
  to: number,
  least: number,
  width: number,
): number {
  let word = 0;
  let used = 0;
  let i = from;
  if (width <= 16) {
    // Two at a time: half the steps through what is not yet a word.
    const both = 2 * width;
    for (; i + 1 < to; i += 2) {
      const middle = values[i]!;
      const first = (middle - values[i - 1]! - least) | 0;
      const pair = first | (((values[i + 1]! - middle - least) | 0) << width);
      word |= pair << used;
      used += both;
      if (used >= 32) {
        view.setInt32(at, word, true);
        at += 4;
        used -= 32;
        word = used > 0 ? pair >>> (both - used) : 0;
      }
    }
  }
  for (; i < to; i++) {
    // Above 2^31 it is negative as a 32-bit integer: the same bits.
    const value = (values[i]! - values[i - 1]! - least) | 0;
    word |= value << used;
    used += width;
    if (used >= 32) {
      view.setInt32(at, word, true);
      at += 4;
      used -= 32;
      word = used > 0 ? value >>> (width - used) : 0;
    }
  }
  for (; used > 0; used -= 8, word >>>= 8) bytes[at++] = word & 255;
  return at;
}

function wideDifferences(
  out: Output,
  at: number,
  values: Float64Array,
  from: number,
  to: number,
  least: number,
  width: number,
): number {
  let rest = 0n;
  let used = 0;
  for (let i = from; i < to; i++) {
    rest |= BigInt(values[i]! - values[i - 1]! - least) << BigInt(used);
    used += width;
    for (; used >= 8; used -= 8) {
      out.bytes[at++] = Number(rest & 255n);
      rest >>= 8n;
    }
  }
  if (used > 0) out.bytes[at++] = Number(rest & 255n);
  return at;
}

/** Bits that hold 0 … value. */
export function bitWidth(value: number): number {
  return value < 2 ** 32 ? 32 - Math.clz32(value) : 32 + bitWidth(Math.floor(value / 2 ** 32));
}

/** A run of the hybrid of runs and packed values: the same value `count` times. */
export function repeated(out: Output, at: number, value: number, count: number, width: number): number {
  at = varint(out, at, count * 2);
  for (let bits = 0; bits < width; bits += 8) out.bytes[at++] = (value >>> bits) & 255;
  return at;
}

/** Codes of rows by a table: `codes` start at −1; the value of a code is at `table[code + 1]`. */
export interface Looked {
  table: Int32Array;
  codes: Int32Array;
}

/**
 * A packed part of the hybrid: `count` values of `width` bits each, 32 at most, the lowest bit first, and zeros to the
 * next multiple of 8.
 */
export function packedRun(
  out: Output,
  at: number,
  { table, codes }: Looked,
  count: number,
  width: number,
): number {
  const { bytes, view } = out;
  const groups = Math.ceil(count / 8);
  at = varint(out, at, groups * 2 + 1);
  const full = at + groups * width;
  let word = 0;
  let used = 0;
  for (let i = 0; i < count; i++) {
    const value = table[codes[i]! + 1]!;
    word |= value << used;
    used += width;
    if (used >= 32) {
      view.setInt32(at, word, true);
      at += 4;
      used -= 32;
      word = used > 0 ? value >>> (width - used) : 0;
    }
  }
  for (; at < full; word >>>= 8) bytes[at++] = word & 255;
  return full;
}

function varint(out: Output, at: number, value: number): number {
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
