import type { ColumnType } from '../../model/columns.js';
import { bitWidth, type LookedUpCodes, type Output, packedRun, repeatedRun } from './encodings.js';
import { binary, encodeThrift, i32, i64, list, struct, type ThriftStruct } from './thrift.js';

/** Enum values of the format (parquet.thrift). */
export const physicalTypes = { BOOLEAN: 0, INTEGER: 1, BIGINT: 2, DOUBLE: 5, VARCHAR: 6 } as const;
export const encodings = { plain: 0, rle: 3, delta: 5, dictionary: 8 } as const;
const pageTypes = { data: 0, dictionary: 2 } as const;

/** Number of non-null values, and their bounds if known. */
export interface ColumnStats {
  present: number;
  min?: number;
  max?: number;
  /** The text that all rows have, if there is one, so that readers see it as the column's bounds. */
  text?: Uint8Array;
}

/** An encoded column of one row group. Columns of the same type and values may share one. */
export interface ColumnChunk {
  type: ColumnType;
  count: number;
  /** A dictionary page if there is one, and the value pages. */
  pages: Uint8Array[];
  stats: ColumnStats;
}

export function chunkOf(
  type: ColumnType,
  count: number,
  pages: Uint8Array[],
  stats: ColumnStats,
): ColumnChunk {
  return { type, count, pages, stats };
}

/** ColumnMetaData of a column. @param offset position of its first page in the file */
export function columnMetadata(
  name: string,
  { type, count, pages, stats: { present, min, max, text } }: ColumnChunk,
  offset: number,
): ThriftStruct {
  const bytes = pages.reduce((sum, { length }) => sum + length, 0);
  const bound = (number: number | undefined) =>
    text ?? (number === undefined ? null : numbersPlain([number], type));
  const [high, low] = [bound(max), bound(min)];
  const bounds: ThriftStruct =
    high === null || low === null
      ? []
      : [
          [5, binary(high)],
          [6, binary(low)],
        ];
  const [dictionary, values] = pages.length > 1 ? [offset, offset + pages[0]!.length] : [null, offset];
  const usedEncodings = [
    encodings.rle,
    encodings.plain,
    dictionary === null ? encodings.delta : encodings.dictionary,
  ];
  return [
    [1, i32(physicalTypes[type])],
    [2, list(usedEncodings.map(i32))],
    [3, list([binary(name)])],
    [4, i32(0)],
    [5, i64(count)],
    [6, i64(bytes)],
    [7, i64(bytes)],
    [9, i64(values)],
    ...(dictionary === null ? [] : ([[11, i64(dictionary)]] satisfies ThriftStruct)),
    [12, struct([[3, i64(count - present)], ...bounds])],
  ];
}

/** Definition levels if all rows or no rows are null. @returns the position after them */
export function levelRun(out: Output, count: number, level: number): number {
  return lengthBefore(out, repeatedRun(out, 4, level, count, 1));
}

/** Definition levels: 1 for values, 0 for nulls, after their length in 4 bytes. */
export function levels(out: Output, isPresent: LookedUpCodes, count: number): number {
  return lengthBefore(out, packedRun(out, 4, isPresent, count, 1));
}

function lengthBefore(out: Output, end: number): number {
  out.view.setUint32(0, end - 4, true);
  return end;
}

/** Dictionary codes of a dictionary with `distinct` entries. */
export function codesInto(
  out: Output,
  offset: number,
  codes: LookedUpCodes,
  count: number,
  distinct: number,
): number {
  const width = bitWidth(distinct - 1);
  out.bytes[offset++] = width;
  return width === 0 ? repeatedRun(out, offset, 0, count, 0) : packedRun(out, offset, codes, count, width);
}

export function dataPage(out: Output, size: number, count: number, encoding: number): Uint8Array {
  const header = struct([
    [1, i32(count)],
    [2, i32(encoding)],
    [3, i32(encodings.rle)],
    [4, i32(encodings.rle)],
  ]);
  return page(pageTypes.data, out.bytes.subarray(0, size), [5, header]);
}

export function dictionaryPage(values: Uint8Array, count: number): Uint8Array {
  const header = struct([
    [1, i32(count)],
    [2, i32(encodings.plain)],
  ]);
  return page(pageTypes.dictionary, values, [7, header]);
}

function page(type: number, body: Uint8Array, header: ThriftStruct[number]): Uint8Array {
  const head = encodeThrift([[1, i32(type)], [2, i32(body.length)], [3, i32(body.length)], header]);
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
}

export function numbersPlain(values: readonly number[], type: ColumnType): Uint8Array {
  const bytes = new Uint8Array(values.length * 8 + 8);
  const out = { bytes, view: new DataView(bytes.buffer) };
  return bytes.subarray(0, encodePlain(out, 0, values, values.length, type));
}

export function encodePlain(
  out: Output,
  offset: number,
  values: ArrayLike<number>,
  count: number,
  type: ColumnType,
): number {
  if (type === 'BOOLEAN') {
    const bits = new Float64Array(count + 8);
    for (let i = 0; i < count; i++) bits[i] = values[i]!;
    for (let i = 0; i < count; i += 8)
      out.bytes[offset++] = bits.subarray(i, i + 8).reduce((byte, bit, place) => byte | (bit << place), 0);
    return offset;
  }
  for (let i = 0; i < count; i++) {
    if (type === 'INTEGER') out.view.setInt32(offset, values[i]!, true);
    else if (type === 'DOUBLE') out.view.setFloat64(offset, values[i]!, true);
    else out.view.setBigInt64(offset, BigInt(values[i]!), true);
    offset += type === 'INTEGER' ? 4 : 8;
  }
  return offset;
}

/** PLAIN encoding of a text dictionary: each text after its length in 4 bytes. */
export function textsPlain(texts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(texts.reduce((sum, text) => sum + 4 + text.length, 0));
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const text of texts) {
    view.setUint32(offset, text.length, true);
    bytes.set(text, offset + 4);
    offset += 4 + text.length;
  }
  return bytes;
}
