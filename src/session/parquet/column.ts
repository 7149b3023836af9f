import type { ColumnType } from '../../model/tables.js';
import {
  bitWidth,
  createOutput,
  deltaPacked,
  type Output,
  outputSize,
  packedRun,
  repeated,
} from './encodings.js';
import { binary, encodeThrift, i32, i64, struct, type ThriftStruct } from './thrift.js';

/** Numbers of the format (parquet.thrift). */
export const physicalTypes = { BOOLEAN: 0, INTEGER: 1, BIGINT: 2, DOUBLE: 5, VARCHAR: 6 } as const;
const encodings = { plain: 0, rle: 3, delta: 5, dictionary: 8 } as const;
const pageTypes = { data: 0, dictionary: 2 } as const;

/** Above it numbers are written as differences instead of as codes of a dictionary. */
const dictionaryNumbers = 64;

export interface ColumnSpec {
  name: string;
  type: ColumnType;
  /** Of a VARCHAR column: its values are indexes into it. */
  texts: readonly string[];
}

/** A column of one row group, ready to be written. */
export interface ColumnChunk {
  pages: Uint8Array[];
  bytes: number;
  metadata: ThriftStruct;
}

/** @returns what turns a row group's values into pages; it keeps its buffers */
export function columnEncoder(
  spec: ColumnSpec,
  rows: number,
): (values: Float64Array, count: number) => ColumnChunk {
  const out = createOutput(outputSize(rows));
  const compact = new Float64Array(rows + 8);
  const codes = new Float64Array(rows + 8);
  const local = new Int32Array(spec.type === 'VARCHAR' ? spec.texts.length : 0).fill(-1);
  const textBytes: (Uint8Array | undefined)[] = [];

  function encode(values: Float64Array, count: number): ColumnChunk {
    const seen = survey(values, count);
    const { present } = seen;
    const dense = present === count ? values : without(values, count, present, compact);
    let at = definitionLevels(out, values, count, present);
    if (present === 0) return chunkOf(spec, count, [dataPage(out, at, count, encodings.plain)], { present });
    if (spec.type === 'VARCHAR') {
      const used = localCodes(dense, present);
      at = codesInto(out, at, codes, present, used.length);
      const dictionary = dictionaryPage(textPlain(used), used.length);
      return chunkOf(spec, count, [dictionary, dataPage(out, at, count, encodings.dictionary)], { present });
    }
    if (spec.type === 'BOOLEAN' || spec.type === 'DOUBLE') {
      at = plain(out, at, dense, present, spec.type);
      return chunkOf(spec, count, [dataPage(out, at, count, encodings.plain)], { present });
    }
    const distinct = fewDistinct(dense, present, codes);
    if (distinct) {
      at = codesInto(out, at, codes, present, distinct.length);
      const dictionary = dictionaryPage(numbersPlain(distinct, spec.type), distinct.length);
      return chunkOf(spec, count, [dictionary, dataPage(out, at, count, encodings.dictionary)], seen);
    }
    at = deltaPacked(out, at, dense, present);
    return chunkOf(spec, count, [dataPage(out, at, count, encodings.delta)], seen);
  }

  /** Codes of this row group alone, in the order they are met. @returns the texts' own codes */
  function localCodes(dense: Float64Array, present: number): number[] {
    const used: number[] = [];
    for (let i = 0; i < present; i++) {
      const code = dense[i]!;
      let own = local[code]!;
      if (own < 0) {
        own = used.length;
        local[code] = own;
        used.push(code);
      }
      codes[i] = own;
    }
    for (const code of used) local[code] = -1;
    return used;
  }

  function textPlain(used: readonly number[]): Uint8Array {
    const parts = used.map((code) => (textBytes[code] ??= Buffer.from(spec.texts[code]!)));
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + 4 + part.length, 0));
    const view = new DataView(bytes.buffer);
    let at = 0;
    for (const part of parts) {
      view.setUint32(at, part.length, true);
      bytes.set(part, at + 4);
      at += 4 + part.length;
    }
    return bytes;
  }

  return encode;
}

/** One value, or null, in every row. */
export function constantChunk(spec: ColumnSpec, value: number | null, count: number): ColumnChunk {
  const out = createOutput(256);
  const present = value === null ? 0 : count;
  let at = levelRun(out, count, present > 0 ? 1 : 0);
  if (value === null) return chunkOf(spec, count, [dataPage(out, at, count, encodings.plain)], { present });
  out.bytes[at++] = 0;
  at = repeated(out, at, 0, count, 0);
  let entry: Uint8Array;
  if (spec.type === 'VARCHAR') {
    const text = Buffer.from(spec.texts[value]!);
    entry = new Uint8Array(4 + text.length);
    new DataView(entry.buffer).setUint32(0, text.length, true);
    entry.set(text, 4);
  } else {
    entry = numbersPlain([value], spec.type);
  }
  const pages = [dictionaryPage(entry, 1), dataPage(out, at, count, encodings.dictionary)];
  const range = spec.type === 'VARCHAR' ? {} : { least: value, most: value };
  return chunkOf(spec, count, pages, { present, ...range });
}

/** Runs of ones and zeros that tell null from value, behind their length in 4 bytes. */
function definitionLevels(out: Output, values: Float64Array, count: number, present: number): number {
  if (present === count || present === 0) return levelRun(out, count, present > 0 ? 1 : 0);
  const levels = new Float64Array(count + 8);
  for (let i = 0; i < count; i++) levels[i] = Number.isNaN(values[i]!) ? 0 : 1;
  return lengthBefore(out, packedRun(out, 4, levels, count, 1));
}

function levelRun(out: Output, count: number, level: number): number {
  return lengthBefore(out, repeated(out, 4, level, count, 1));
}

function lengthBefore(out: Output, end: number): number {
  out.view.setUint32(0, end - 4, true);
  return end;
}

function codesInto(out: Output, at: number, codes: Float64Array, count: number, distinct: number): number {
  const width = bitWidth(distinct - 1);
  out.bytes[at++] = width;
  if (width === 0) return repeated(out, at, 0, count, 0);
  codes.fill(0, count, Math.ceil(count / 8) * 8);
  return packedRun(out, at, codes, count, width);
}

/** @returns the values if they are few, and their codes in `codes` */
function fewDistinct(values: Float64Array, count: number, codes: Float64Array): number[] | null {
  const known = new Map<number, number>();
  let last = Number.NaN;
  let lastCode = 0;
  for (let i = 0; i < count; i++) {
    const value = values[i]!;
    if (value !== last) {
      last = value;
      const code = known.get(value);
      if (code === undefined) {
        if (known.size === dictionaryNumbers) return null;
        lastCode = known.size;
        known.set(value, lastCode);
      } else lastCode = code;
    }
    codes[i] = lastCode;
  }
  return [...known.keys()];
}

/** How many are not null, and their bounds. */
function survey(values: Float64Array, count: number): Required<Seen> {
  let present = 0;
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    const value = values[i]!;
    if (value !== value) continue;
    present++;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { present, least, most };
}

function without(values: Float64Array, count: number, present: number, into: Float64Array): Float64Array {
  let at = 0;
  for (let i = 0; i < count && at < present; i++) {
    const value = values[i]!;
    if (value === value) into[at++] = value;
  }
  return into;
}

function numbersPlain(values: readonly number[], type: ColumnType): Uint8Array {
  const bytes = new Uint8Array(values.length * 8 + 8);
  const out = { bytes, view: new DataView(bytes.buffer) };
  return bytes.subarray(0, plain(out, 0, values, values.length, type));
}

function plain(out: Output, at: number, values: ArrayLike<number>, count: number, type: ColumnType): number {
  if (type === 'BOOLEAN') {
    const bits = new Float64Array(count + 8);
    for (let i = 0; i < count; i++) bits[i] = values[i]!;
    for (let i = 0; i < count; i += 8)
      out.bytes[at++] = bits.subarray(i, i + 8).reduce((byte, bit, place) => byte | (bit << place), 0);
    return at;
  }
  for (let i = 0; i < count; i++) {
    if (type === 'INTEGER') out.view.setInt32(at, values[i]!, true);
    else if (type === 'DOUBLE') out.view.setFloat64(at, values[i]!, true);
    else out.view.setBigInt64(at, BigInt(values[i]!), true);
    at += type === 'INTEGER' ? 4 : 8;
  }
  return at;
}

function dataPage(out: Output, size: number, count: number, encoding: number): Uint8Array {
  const header = struct([
    [1, i32(count)],
    [2, i32(encoding)],
    [3, i32(encodings.rle)],
    [4, i32(encodings.rle)],
  ]);
  return page(pageTypes.data, out.bytes.subarray(0, size), [5, header]);
}

function dictionaryPage(values: Uint8Array, count: number): Uint8Array {
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

interface Seen {
  present: number;
  least?: number;
  most?: number;
}

/** `metadata` lacks the offsets (fields 9 and 11), which only the file knows. */
function chunkOf(spec: ColumnSpec, count: number, pages: Uint8Array[], seen: Seen): ColumnChunk {
  const bytes = pages.reduce((sum, { length }) => sum + length, 0);
  const { least, most } = seen;
  const bounds: ThriftStruct =
    least === undefined || most === undefined
      ? []
      : [
          [5, binary(numbersPlain([most], spec.type))],
          [6, binary(numbersPlain([least], spec.type))],
        ];
  const statistics: ThriftStruct = [[3, i64(count - seen.present)], ...bounds];
  const used = [encodings.rle, encodings.plain, pages.length > 1 ? encodings.dictionary : encodings.delta];
  const metadata: ThriftStruct = [
    [1, i32(physicalTypes[spec.type])],
    [2, { type: 'list', of: used.map(i32) }],
    [3, { type: 'list', of: [binary(spec.name)] }],
    [4, i32(0)],
    [5, i64(count)],
    [6, i64(bytes)],
    [7, i64(bytes)],
    [12, struct(statistics)],
  ];
  return { pages, bytes, metadata };
}
