import { constantChunk, createScratch, numbersChunk } from './column.js';
import { type GroupIndexes, lookedUpChunk, readIndexes } from './dictionary.js';
import { arrayOf, type FileColumn, isLookedUp } from './file-column.js';
import type { ColumnChunk } from './pages.js';

/** The arrays with the values of a row group, by name. */
export interface GroupArrays {
  /** NaN is null. */
  numbers(array: string): Float64Array;
  /** Codes of looked-up columns; −1 is null. */
  codes(array: string): Int32Array;
}

export interface EncodedGroup {
  rows: number;
  /** In column order. */
  chunks: ColumnChunk[];
}

/**
 * Encodes row groups and shares work between columns: columns with the same array and type and without a lookup table become one chunk, and
 * an array that many columns look up is read once.
 * @param maxRows maximum rows of a group
 */
export function groupEncoder(
  columns: readonly FileColumn[],
  maxRows: number,
): (arrays: GroupArrays, rows: number) => EncodedGroup {
  const scratch = createScratch(maxRows);
  return (arrays, rows) => {
    const chunkByKey = new Map<string, ColumnChunk>();
    const indexes = new Map<string, GroupIndexes>();
    const chunks = columns.map((column) => {
      if (column.constant !== undefined) return constantChunk(column, column.constant, rows);
      const array = arrayOf(column);
      if (isLookedUp(column)) {
        const read = getOrCreate(indexes, array, () => readIndexes(arrays.codes(array), rows));
        return lookedUpChunk(scratch, column, read, rows);
      }
      const { type } = column;
      return getOrCreate(chunkByKey, `${array} ${type}`, () =>
        numbersChunk(scratch, type, arrays.numbers(array), rows),
      );
    });
    return { rows, chunks };
  };
}

function getOrCreate<V>(map: Map<string, V>, key: string, make: () => V): V {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const value = make();
  map.set(key, value);
  return value;
}
