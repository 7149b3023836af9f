import {
  chunkOf,
  codesInto,
  type ColumnChunk,
  dataPage,
  dictionaryPage,
  encodings,
  levelRun,
  levels,
  numbersPlain,
  textsPlain,
} from './pages.js';
import type { FileColumn } from './file-column.js';
import type { Scratch } from './column.js';

/** Which indexes the rows of a group have: found once, for all columns that are looked up by them. */
export interface GroupIndexes {
  /** Each once, in the order they are met; −1 among them where a row has none. */
  used: readonly number[];
  /** Of each row, the place of its index in `used`. */
  place: Int32Array;
}

/** Indexes of the rows of a group; −1: none. */
export function readIndexes(indexes: Int32Array, count: number): GroupIndexes {
  const place = new Int32Array(count);
  const used: number[] = [];
  // By index + 1, place + 1: 0 is none yet.
  let known = new Int32Array(1024);
  for (let i = 0; i < count; i++) {
    const index = indexes[i]! + 1;
    if (index >= known.length) known = longer(known, index + 1);
    let own = known[index]!;
    if (own === 0) {
      own = used.push(index - 1);
      known[index] = own;
    }
    place[i] = own - 1;
  }
  return { used, place };
}

function longer(array: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(Math.max(length, 2 * array.length));
  copy.set(array);
  return copy;
}

/**
 * A column whose value follows from an index: a dictionary, whatever it holds. What costs is one look at a small table
 * for each row. Not for flags, for which Parquet has no dictionary.
 * @param column without values of its own the index is the text's
 */
export function lookedUpChunk(
  { out, codes }: Scratch,
  { type, texts, values }: FileColumn,
  { used, place }: GroupIndexes,
  count: number,
): ColumnChunk {
  const codeOf = new Map<number, number>();
  let nulls = false;
  const table = Int32Array.from(used, (index) => {
    const value = values ? (values[index] ?? Number.NaN) : index;
    if (Number.isNaN(value) || index < 0) {
      nulls = true;
      return -1;
    }
    const code = codeOf.get(value) ?? codeOf.size;
    codeOf.set(value, code);
    return code;
  });
  const distinct = [...codeOf.keys()];
  if (distinct.length === 0) {
    const at = levelRun(out, count, 0);
    return chunkOf(type, count, [dataPage(out, at, count, encodings.plain)], { present: 0 });
  }
  let present = count;
  let at: number;
  if (nulls) {
    for (let i = 0; i < count; i++) codes[i] = table[place[i]!]! < 0 ? 0 : 1;
    codes.fill(0, count, Math.ceil(count / 8) * 8);
    at = levels(out, codes, count);
    present = 0;
    for (let i = 0; i < count; i++) {
      const code = table[place[i]!]!;
      if (code >= 0) codes[present++] = code;
    }
  } else {
    at = levelRun(out, count, 1);
    if (distinct.length > 1) for (let i = 0; i < count; i++) codes[i] = table[place[i]!]!;
  }
  at = codesInto(out, at, codes, present, distinct.length);
  const body =
    type === 'VARCHAR'
      ? textsPlain(distinct.map((code) => Buffer.from(texts[code]!)))
      : numbersPlain(distinct, type);
  const pages = [dictionaryPage(body, distinct.length), dataPage(out, at, count, encodings.dictionary)];
  return chunkOf(type, count, pages, { present, ...(type !== 'VARCHAR' && boundsOf(distinct)) });
}

function boundsOf(values: readonly number[]): { least: number; most: number } {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { least, most };
}
