import type { Columns } from '../../model/workbench.js';
import { groupRows } from './file.js';
import { arraysOf, type FileColumn } from './file-column.js';

/** Gathers rows into row groups. */
interface RowGroups {
  /** Appends the first `rows` values of each array; they are copied at once. */
  append(columns: Columns, rows: number): Promise<void>;
  /** Passes on the remaining rows. */
  flush(): Promise<void>;
}

/**
 * @param buffers gives the arrays that collect the next row group; arrays that are too short are replaced
 * @param onFull receives a row group; its arrays are not changed afterwards unless `buffers` returns them
 */
export function rowGroups(
  columns: readonly FileColumn[],
  buffers: () => Columns,
  onFull: (group: Columns, rows: number) => void | Promise<void>,
): RowGroups {
  const arrays = arraysOf(columns);
  let group: Columns | null = null;
  let filled = 0;
  async function flush(): Promise<void> {
    if (group === null || filled === 0) return;
    const [ready, rows] = [group, filled];
    group = null;
    filled = 0;
    await onFull(ready, rows);
  }
  return {
    async append(values, rows) {
      for (let from = 0; from < rows;) {
        group ??= buffers();
        const n = Math.min(rows - from, groupRows - filled);
        grow(group, filled, filled + n);
        for (const name of arrays) {
          const source = values[name];
          if (!source) throw new Error(`the announced column ${name} is missing`);
          group[name]!.set(n === source.length ? source : source.subarray(from, from + n), filled);
        }
        filled += n;
        from += n;
        if (filled === groupRows) await flush();
      }
    },
    flush,
  };
}

/** @param rows initial size of the arrays; they grow if more rows arrive */
export function emptyGroup(columns: readonly FileColumn[], rows = groupRows): Columns {
  return Object.fromEntries(arraysOf(columns).map((name) => [name, new Float64Array(rows)]));
}

function grow(group: Columns, filled: number, neededRows: number): void {
  for (const [name, values] of Object.entries(group)) {
    if (values.length >= neededRows) continue;
    const longer = new Float64Array(Math.min(groupRows, Math.max(neededRows, 4 * values.length)));
    longer.set(values.subarray(0, filled));
    group[name] = longer;
  }
}
