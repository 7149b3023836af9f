import type { TableName } from '../../model/tables.js';
import type { KeptColumn, Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';

/** How a column of a table is selected, or looked up by another column's value; a text is an index into `texts`. */
export type ScannedColumn = ({ sql: string } | { by: string; values: Float64Array }) & {
  texts?: readonly string[];
};

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
): Promise<void> {
  const given = Object.entries(columns);
  const announced = Object.fromEntries(given.map(([name, column]) => [name, keptColumn(column)]));
  const writer = await workbench.keepColumns(table, capture_id, announced, { execution_id, host });
  const selected = given.flatMap(([name, column]) => ('sql' in column ? [`${column.sql} AS "${name}"`] : []));
  for (const part of from) {
    for await (const { rows, columns: batch } of workbench.scan(`SELECT ${selected.join(', ')} FROM ${part}`))
      await writer.append(batch, rows);
  }
  await writer.close();
}

function keptColumn(column: ScannedColumn): KeptColumn {
  return {
    ...(column.texts && { texts: column.texts }),
    ...('by' in column && { from: column.by, values: column.values }),
  };
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
