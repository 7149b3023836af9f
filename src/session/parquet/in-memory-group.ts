import type { InMemoryColumns } from '../../model/workbench.js';
import { groupRows } from './file.js';
import type { FileColumn } from './file-column.js';
import { type EncodedGroup, type GroupArrays, groupEncoder } from './group.js';

/** Number of row groups for this many rows. */
export const groupsOf = (rows: number): number => Math.ceil(rows / groupRows);

/** Encodes row groups of an in-memory table, in any order. */
export function inMemoryGroups(
  tableColumns: InMemoryColumns,
  columns: readonly FileColumn[],
  rows: number,
): (group: number) => EncodedGroup {
  const encode = groupEncoder(columns, Math.min(rows, groupRows));
  return (group) => {
    const from = group * groupRows;
    const count = Math.min(groupRows, rows - from);
    const arrays: GroupArrays = {
      numbers(array) {
        const source = sourceOf(tableColumns, array);
        if (!('numbers' in source)) throw new Error(`${array} has codes, but numbers were requested`);
        return source.numbers(from, count);
      },
      codes(array) {
        const source = sourceOf(tableColumns, array);
        if (!('codes' in source)) throw new Error(`${array} has numbers, but codes were requested`);
        return source.codes(from, count);
      },
    };
    return encode(arrays, count);
  };
}

function sourceOf(columns: InMemoryColumns, name: string) {
  const column = columns[name];
  if (column === undefined || column === null || typeof column !== 'object')
    throw new Error(`the announced column ${name} is missing`);
  return column.source;
}
