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

/** The indexes in the rows of a group, computed once for all columns that are looked up by them. */
export interface GroupIndexes {
  /** Index per row; −1: null. */
  indexes: Int32Array;
  /** Distinct indexes in order of first use. */
  used: readonly number[];
  maxIndex: number;
}

/** @param indexes −1: null */
export function readIndexes(indexes: Int32Array, count: number): GroupIndexes {
  const usedIndexes: number[] = [];
  let maxIndex = -1;
  for (let i = 0; i < count; i++) {
    const index = indexes[i]!;
    if (index > maxIndex) maxIndex = index;
  }
  const seen = new Uint8Array(maxIndex + 2);
  for (let i = 0; i < count; i++) {
    const index = indexes[i]!;
    if (seen[index + 1] === 1) continue;
    seen[index + 1] = 1;
    usedIndexes.push(index);
  }
  return { indexes, used: usedIndexes, maxIndex };
}

/**
 * A column with values looked up by an index: always written as a dictionary, at the cost of one table lookup per row. Not for flags, for
 * which Parquet has no dictionary.
 * Without `values` the index is the index of the column's text.
 */
export function lookedUpChunk(
  { out, codes: compact }: Scratch,
  { type, texts, values }: FileColumn,
  { indexes, used, maxIndex }: GroupIndexes,
  count: number,
): ColumnChunk {
  const codeOf = new Map<number, number>();
  const table = new Int32Array(maxIndex + 2);
  const isValue = new Int32Array(maxIndex + 2);
  for (const index of used) {
    const value = index < 0 ? Number.NaN : values ? (values[index] ?? Number.NaN) : index;
    if (Number.isNaN(value)) continue;
    const code = codeOf.get(value) ?? codeOf.size;
    codeOf.set(value, code);
    table[index + 1] = code;
    isValue[index + 1] = 1;
  }
  const distinct = [...codeOf.keys()];
  if (distinct.length === 0) {
    const offset = levelRun(out, count, 0);
    return chunkOf(type, count, [dataPage(out, offset, count, encodings.plain)], { present: 0 });
  }
  let present = count;
  let codes = indexes;
  let start: number;
  if (used.some((index) => isValue[index + 1] === 0)) {
    start = levels(out, { table: isValue, codes: indexes }, count);
    present = 0;
    for (let i = 0; i < count; i++) {
      const index = indexes[i]!;
      if (isValue[index + 1] === 1) compact[present++] = index;
    }
    codes = compact;
  } else start = levelRun(out, count, 1);
  start = codesInto(out, start, { table, codes }, present, distinct.length);
  const body =
    type === 'VARCHAR'
      ? textsPlain(distinct.map((code) => Buffer.from(texts[code]!)))
      : numbersPlain(distinct, type);
  const pages = [dictionaryPage(body, distinct.length), dataPage(out, start, count, encodings.dictionary)];
  return chunkOf(type, count, pages, { present, ...(type !== 'VARCHAR' && boundsOf(distinct)) });
}

function boundsOf(values: readonly number[]): { min: number; max: number } {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}
