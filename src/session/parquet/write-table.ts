import type { SavedColumnsWriter } from '../../model/workbench.js';
import type { Digest } from '../digest.js';
import { createParquet } from './file.js';
import type { FileColumn } from './file-column.js';
import { type GroupArrays, groupEncoder } from './group.js';
import { emptyGroup, rowGroups } from './row-groups.js';

interface WrittenTable {
  writer: SavedColumnsWriter;
  /** Resolves when the file is complete. */
  written: Promise<{ rows: number; digest: Digest }>;
}

/** Writes a table on this thread from rows that arrive in parts. */
export function writeTable(path: string, columns: readonly FileColumn[]): WrittenTable {
  const file = createParquet(path, columns);
  // Created for the first group, which is the largest: a small table needs no megabytes per column.
  let encode: ReturnType<typeof groupEncoder> | null = null;
  const buffers = emptyGroup(columns, 1024);
  const groups = rowGroups(
    columns,
    () => buffers,
    (group, rows) => {
      encode ??= groupEncoder(columns, rows);
      const arrays: GroupArrays = {
        numbers: (array) => group[array]!,
        codes: (array) => codesOf(group[array]!, rows),
      };
      file.writeGroup(encode(arrays, rows));
    },
  );
  let resolve!: (written: { rows: number; digest: Digest }) => void;
  const written = new Promise<{ rows: number; digest: Digest }>((settle) => {
    resolve = settle;
  });
  return {
    writer: {
      append: groups.append,
      async close() {
        await groups.flush();
        resolve(file.close());
      },
    },
    written,
  };
}

/** NaN becomes −1. */
function codesOf(values: Float64Array, rows: number): Int32Array {
  const codes = new Int32Array(rows);
  for (let i = 0; i < rows; i++) {
    const value = values[i]!;
    codes[i] = value === value ? value : -1;
  }
  return codes;
}
