import { constantChunk, createScratch, numbersChunk } from './column.js';
import { type GroupIndexes, lookedUpChunk, readIndexes } from './dictionary.js';
import { arrayOf, type FileColumn, isLookedUp } from './file-column.js';
import type { ColumnChunk } from './pages.js';

/** The arrays that the columns of a row group are made of, by name. */
export interface GroupArrays {
  /** NaN is null. */
  numbers(array: string): Float64Array;
  /** Codes of columns that are looked up; −1 is null. */
  codes(array: string): Int32Array;
}

export interface EncodedGroup {
  rows: number;
  /** In the order of the columns. */
  chunks: ColumnChunk[];
}

/**
 * Encodes row groups, doing once what several columns share: columns of one array and type without values of their own
 * are one chunk, and an array that many are looked up by is read once.
 * @param most rows of a group at most
 */
export function groupEncoder(
  columns: readonly FileColumn[],
  most: number,
): (arrays: GroupArrays, rows: number) => EncodedGroup {
  const scratch = createScratch(most);
  return (arrays, rows) => {
    const made = new Map<string, ColumnChunk>();
    const indexes = new Map<string, GroupIndexes>();
    const chunks = columns.map((column) => {
      if (column.constant !== undefined) return constantChunk(column, column.constant, rows);
      const array = arrayOf(column);
      if (isLookedUp(column)) {
        const read = once(indexes, array, () => readIndexes(arrays.codes(array), rows));
        return lookedUpChunk(scratch, column, read, rows);
      }
      const { type } = column;
      return once(made, `${array} ${type}`, () => numbersChunk(scratch, type, arrays.numbers(array), rows));
    });
    return { rows, chunks };
  };
}

function once<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}
