import type { Columns, Workbench } from '../../model/workbench.js';

/** Writes rows of a scratch table one by one, in chunks. */
export interface RowWriter {
  /** Values in the order of the columns; NaN is null. */
  add(...values: number[]): void;
  close(): void;
}

const bufferRows = 2048 * 8;

/** Creates the table and returns its writer. */
export async function openRowWriter(
  workbench: Workbench,
  table: string,
  columns: readonly string[],
): Promise<RowWriter> {
  const writer = await workbench.createTable(table, columns);
  const arrays = columns.map(() => new Float64Array(bufferRows));
  const buffers: Columns = Object.fromEntries(columns.map((name, c) => [name, arrays[c]!]));
  let rows = 0;
  const flush = () => {
    if (rows > 0) writer.append(buffers, rows);
    rows = 0;
  };
  return {
    add(...values) {
      for (let c = 0; c < arrays.length; c++) arrays[c]![rows] = values[c]!;
      if (++rows === bufferRows) flush();
    },
    close() {
      flush();
      writer.close();
    },
  };
}
