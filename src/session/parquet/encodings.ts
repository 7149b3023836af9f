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
  const mosts = new Float64Array(blockValues / miniValues);
  for (let from = 1; from < count; from += blockValues) {
    const to = Math.min(from + blockValues, count);
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    mosts.fill(Number.NEGATIVE_INFINITY);
    for (let mini = 0, begin = from; begin < to; mini++, begin += miniValues) {
      const end = Math.min(begin + miniValues, to);
      let own = Number.NEGATIVE_INFINITY;
      for (let i = begin; i < end; i++) {
        const delta = values[i]! - values[i - 1]!;
        if (delta < least) least = delta;
        if (delta > own) own = delta;
      }
      mosts[mini] = own;
      if (own > most) most = own;
    }
    at = signedVarint(out, at, least);
    const widths = at;
    at += mosts.length;
    const wide = most - least >= 2 ** 32;
    for (let mini = 0, begin = from; mini < mosts.length; mini++, begin += miniValues) {
      const end = Math.min(begin + miniValues, to);
      const width = begin < end ? bitWidth(mosts[mini]! - least) : 0;
      out.bytes[widths + mini] = width;
      at = wide
        ? deltasWide(out, at, values, begin, end, least, width)
        : deltasNarrow(out, at, values, begin, end, least, width);
    }
  }
  return at;
}

/**
 * What the differences begin … end are above the least of their block, `width` bits each, 32 at most. Of a part that is
 * not full the rest is zeros.
 */
function deltasNarrow(
  { bytes, view }: Output,
  at: number,
  values: Float64Array,
  begin: number,
  end: number,
  least: number,
  width: number,
): number {
  if (width === 0) return at;
  const full = at + (miniValues * width) / 8;
  let word = 0;
  let used = 0;
  for (let i = begin; i < end; i++) {
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
  for (; at < full; word >>>= 8) bytes[at++] = word & 255;
  return full;
}

function deltasWide(
  out: Output,
  at: number,
  values: Float64Array,
  begin: number,
  end: number,
  least: number,
  width: number,
): number {
  if (width === 0) return at;
  const full = at + (miniValues * width) / 8;
  let rest = 0n;
  let used = 0;
  for (let i = begin; i < end; i++) {
    rest |= BigInt(values[i]! - values[i - 1]! - least) << BigInt(used);
    used += width;
    for (; used >= 8; used -= 8) {
      out.bytes[at++] = Number(rest & 255n);
      rest >>= 8n;
    }
  }
  for (; at < full; rest >>= 8n) out.bytes[at++] = Number(rest & 255n);
  return full;
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

/** Codes of rows by a table: `codes` from −1 on, whose value is at `table[code + 1]`. */
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
