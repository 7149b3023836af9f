import type { Columns } from '../../model/workbench.js';
import { createScratch, numbersChunk } from './column.js';
import { type GroupIndexes, lookedUpChunk, readIndexes } from './dictionary.js';
import { arrayOf, type FileColumn } from './file-column.js';
import type { ColumnChunk } from './pages.js';

/**
 * Encodes the columns of row groups, doing once what several share: columns of one array and type without values of
 * their own are one chunk, and an array that many are looked up by is read once.
 * @param rows of a group at most
 */
export function groupEncoder(
  rows: number,
): (given: Columns, count: number) => (column: FileColumn) => ColumnChunk {
  const scratch = createScratch(rows);
  return (given, count) => {
    const chunks = new Map<string, ColumnChunk>();
    const indexes = new Map<string, GroupIndexes>();
    return (column) => {
      const { type, values } = column;
      const array = arrayOf(column);
      if (type === 'VARCHAR' || values)
        return lookedUpChunk(
          scratch,
          column,
          made(indexes, array, () => readIndexes(given[array]!, count)),
          count,
        );
      return made(chunks, `${array} ${type}`, () => numbersChunk(scratch, type, given[array]!, count));
    };
  };
}

function made<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}
