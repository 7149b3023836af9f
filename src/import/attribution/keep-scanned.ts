import type { TableName } from '../../model/tables.js';
import type { Columns, KeptColumn, Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';

/**
 * How a column of a table is selected, or looked up by another column's value, or neither: it is made of others. A text
 * is an index into `texts`.
 */
export type ScannedColumn = { sql?: string; by?: string; values?: Float64Array; texts?: readonly string[] };

/** Columns that are made, batch by batch, of the others and those that are selected for it (`of`). */
export interface MadeColumns {
  of: readonly string[];
  fill(rows: number, columns: Columns): void;
}

/**
 * Writes a table of the model from a select of numbers: texts stay codes, which DuckDB's own writer would look up and
 * hash again for every row. On this thread, row group by row group: one group is held at a time.
 * @param from what stands behind FROM; several are read one after the other
 */
export async function keepScanned(
  workbench: Workbench,
  { execution_id, capture_id, host }: Pick<ImportContext, 'execution_id' | 'capture_id' | 'host'>,
  table: TableName,
  columns: Record<string, ScannedColumn>,
  from: readonly string[],
  made: MadeColumns = { of: [], fill: () => {} },
): Promise<void> {
  const given = Object.entries(columns);
  const announced = Object.fromEntries(given.map(([name, column]) => [name, keptColumn(column)]));
  const writer = await workbench.keepColumns(table, capture_id, announced, { execution_id, host });
  const selected = given.flatMap(([name, { sql }]) => (sql === undefined ? [] : [`${sql} AS "${name}"`]));
  for (const part of from) {
    for await (const { rows, columns: batch } of workbench.scan(
      `SELECT ${[...selected, ...made.of].join(', ')} FROM ${part}`,
    )) {
      made.fill(rows, batch);
      await writer.append(batch, rows);
    }
  }
  await writer.close();
}

function keptColumn({ by, values, texts }: ScannedColumn): KeptColumn {
  return { ...(texts && { texts }), ...(by && { from: by }), ...(values && { values }) };
}

/** Texts of trace_names by their code; a hole is a code without a text. */
export async function textsByCode(workbench: Workbench): Promise<string[]> {
  const texts: string[] = [];
  for (const { code, text } of await workbench.query<{ code: number; text: string }>(
    'SELECT code, text::VARCHAR AS text FROM trace_names ORDER BY code',
  ))
    texts[code] = text;
  return texts;
}
