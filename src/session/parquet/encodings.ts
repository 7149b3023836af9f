/**
 * Parquet's encodings of values (https://parquet.apache.org/docs/file-format/data-pages/encodings/) for doubles that are exact integers up
 * to 2^53. Each function writes at a position of a buffer and returns the position after its output.
 */
export interface Output {
  bytes: Uint8Array;
  view: DataView;
}

/** @param size bytes; for a page of `rows` values: outputSize(rows) */
export function createOutput(size: number): Output {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}

/** Bytes that are enough for any encoding of this many values with definition levels. */
export const outputSize = (rows: number): number => rows * 9 + 4096;

/** Values per DELTA_BINARY_PACKED block with one bit width: with four widths, files are 1 % smaller and take 1.6x as long. */
const blockValues = 128;

/** DELTA_BINARY_PACKED: slowly changing values take only as many bits as their differences. */
export function deltaPacked(out: Output, offset: number, values: Float64Array, count: number): number {
  offset = varint(out, offset, blockValues);
  offset = varint(out, offset, 1);
  offset = varint(out, offset, count);
  offset = signedVarint(out, offset, values[0]!);
  for (let from = 1; from < count; from += blockValues) {
    const to = Math.min(from + blockValues, count);
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (let i = from; i < to; i++) {
      const delta = values[i]! - values[i - 1]!;
      if (delta >= min) {
        if (delta > max) max = delta;
      } else {
        min = delta;
        if (delta > max) max = delta;
      }
    }
    const width = bitWidth(max - min);
    offset = signedVarint(out, offset, min);
    out.bytes[offset++] = width;
    if (width === 0) continue;
    const end = offset + (blockValues * width) / 8;
    if (width <= 32) offset = writeDifferences(out, offset, values, from, to, min, width);
    else offset = writeWideDifferences(out, offset, values, from, to, min, width);
    // Pads the last block.
    out.bytes.fill(0, offset, end);
    offset = end;
  }
  return offset;
}

/** Writes differences minus `min`, `width` bits each (at most 32), lowest bit first. */
function writeDifferences(
  { bytes, view }: Output,
  offset: number,
  values: Float64Array,
  from: number,
  to: number,
  min: number,
  width: number,
): number {
  let word = 0;
  let usedBits = 0;
  let i = from;
  if (width <= 16) {
    // Two values at a time take half the steps.
    const pairWidth = 2 * width;
    for (; i + 1 < to; i += 2) {
      const middle = values[i]!;
      const first = (middle - values[i - 1]! - min) | 0;
      const pair = first | (((values[i + 1]! - middle - min) | 0) << width);
      word |= pair << usedBits;
      usedBits += pairWidth;
      if (usedBits >= 32) {
        view.setInt32(offset, word, true);
        offset += 4;
        usedBits -= 32;
        word = usedBits > 0 ? pair >>> (pairWidth - usedBits) : 0;
      }
    }
  }
  for (; i < to; i++) {
    // Values above 2^31 are negative 32-bit integers with the same bits.
    const value = (values[i]! - values[i - 1]! - min) | 0;
    word |= value << usedBits;
    usedBits += width;
    if (usedBits >= 32) {
      view.setInt32(offset, word, true);
      offset += 4;
      usedBits -= 32;
      word = usedBits > 0 ? value >>> (width - usedBits) : 0;
    }
  }
  for (; usedBits > 0; usedBits -= 8, word >>>= 8) bytes[offset++] = word & 255;
  return offset;
}

function writeWideDifferences(
  out: Output,
  offset: number,
  values: Float64Array,
  from: number,
  to: number,
  min: number,
  width: number,
): number {
  let remaining = 0n;
  let usedBits = 0;
  for (let i = from; i < to; i++) {
    remaining |= BigInt(values[i]! - values[i - 1]! - min) << BigInt(usedBits);
    usedBits += width;
    for (; usedBits >= 8; usedBits -= 8) {
      out.bytes[offset++] = Number(remaining & 255n);
      remaining >>= 8n;
    }
  }
  if (usedBits > 0) out.bytes[offset++] = Number(remaining & 255n);
  return offset;
}

/** Bits needed for values 0 to `value`. */
export function bitWidth(value: number): number {
  return value < 2 ** 32 ? 32 - Math.clz32(value) : 32 + bitWidth(Math.floor(value / 2 ** 32));
}

/** A run in the RLE/bit-packing hybrid: `count` times the same value. */
export function repeatedRun(
  out: Output,
  offset: number,
  value: number,
  count: number,
  width: number,
): number {
  offset = varint(out, offset, count * 2);
  for (let bits = 0; bits < width; bits += 8) out.bytes[offset++] = (value >>> bits) & 255;
  return offset;
}

/** Codes of rows with a lookup table: `codes` start at −1; the value of a code is `table[code + 1]`. */
export interface LookedUpCodes {
  table: Int32Array;
  codes: Int32Array;
}

/**
 * A bit-packed run in the hybrid: `count` values of `width` bits each (at most 32), lowest bit first, padded with zeros to the next
 * multiple of 8.
 */
export function packedRun(
  out: Output,
  offset: number,
  { table, codes }: LookedUpCodes,
  count: number,
  width: number,
): number {
  const { bytes, view } = out;
  const groups = Math.ceil(count / 8);
  offset = varint(out, offset, groups * 2 + 1);
  const end = offset + groups * width;
  let word = 0;
  let usedBits = 0;
  for (let i = 0; i < count; i++) {
    const value = table[codes[i]! + 1]!;
    word |= value << usedBits;
    usedBits += width;
    if (usedBits >= 32) {
      view.setInt32(offset, word, true);
      offset += 4;
      usedBits -= 32;
      word = usedBits > 0 ? value >>> (width - usedBits) : 0;
    }
  }
  for (; offset < end; word >>>= 8) bytes[offset++] = word & 255;
  return end;
}

function varint(out: Output, offset: number, value: number): number {
  let remaining = value;
  while (remaining > 127) {
    out.bytes[offset++] = (remaining % 128) | 128;
    remaining = Math.floor(remaining / 128);
  }
  out.bytes[offset++] = remaining;
  return offset;
}

/** Zigzag encoding: small numbers of either sign are short. */
function signedVarint(out: Output, offset: number, value: number): number {
  if (Math.abs(value) < 2 ** 52) return varint(out, offset, value < 0 ? -2 * value - 1 : 2 * value);
  let remaining = value < 0 ? -2n * BigInt(value) - 1n : 2n * BigInt(value);
  for (; remaining > 127n; remaining >>= 7n) out.bytes[offset++] = Number(remaining & 127n) | 128;
  out.bytes[offset++] = Number(remaining);
  return offset;
}
