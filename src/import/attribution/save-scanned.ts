import type { TableName } from '../../model/tables.js';
import type { Columns, SavedColumn, Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';

/**
 * A column of a table: selected, looked up by another column's value, or computed from others. A text is an index into
 * `texts`.
 */
type ScannedColumn = { sql?: string; by?: string; values?: Float64Array; texts?: readonly string[] };

/** Columns computed batch by batch from the selected columns and `names`, which are selected for them. */
interface ComputedColumns {
  names: readonly string[];
  fill(rows: number, columns: Columns): void;
}

/**
 * Writes a table of the model from a select of numbers. Texts stay codes, which DuckDB's own writer would look up and hash
 * again for every row. Runs on this thread, holding one row group at a time.
 * @param from FROM clauses, read one after the other
 */
export async function saveScanned(
  workbench: Workbench,
  { execution_id, capture_id, host }: Pick<ImportContext, 'execution_id' | 'capture_id' | 'host'>,
  table: TableName,
  columns: Record<string, ScannedColumn>,
  from: readonly string[],
  computed: ComputedColumns = { names: [], fill: () => {} },
): Promise<void> {
  const entries = Object.entries(columns);
  const savedColumns = Object.fromEntries(entries.map(([name, column]) => [name, savedColumn(column)]));
  const writer = await workbench.saveColumns(table, capture_id, savedColumns, { execution_id, host });
  const selected = entries.flatMap(([name, { sql }]) => (sql === undefined ? [] : [`${sql} AS "${name}"`]));
  for (const part of from) {
    for await (const { rows, columns: batch } of workbench.scan(
      `SELECT ${[...selected, ...computed.names].join(', ')} FROM ${part}`,
    )) {
      computed.fill(rows, batch);
      await writer.append(batch, rows);
    }
  }
  await writer.close();
}

function savedColumn({ by, values, texts }: ScannedColumn): SavedColumn {
  return { ...(texts && { texts }), ...(by && { from: by }), ...(values && { values }) };
}

/** Texts of trace_names by code; a hole is a code without a text. */
export async function readTextsByCode(workbench: Workbench): Promise<string[]> {
  const texts: string[] = [];
  for (const { code, text } of await workbench.query<{ code: number; text: string }>(
    'SELECT code, text::VARCHAR AS text FROM trace_names ORDER BY code',
  ))
    texts[code] = text;
  return texts;
}
