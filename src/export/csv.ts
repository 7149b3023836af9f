import { csvField } from '../model/csv-field.js';
import type { SqlValue } from '../session/sql-message.js';
import type { SqlResult } from '../session/sql-run.js';
import { tableNames, tables, type TableName } from '../model/tables.js';
import type { SessionDatabase } from '../session/query.js';
import { columnsAsText, rowsOf, timeColumn } from './pages.js';

/** Text of a query's value; empty for NULL. */
export function cellText(value: SqlValue): string {
  if (value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The result of a query as CSV. */
export function csvText({ columns, rows }: SqlResult): string {
  const cellOf = (value: SqlValue) => (value === null ? null : cellText(value));
  return csvLines([columns.map(({ name }) => name), ...rows.map((row) => row.map(cellOf))]);
}

/** Rows of cells as CSV. */
export const csvLines = (lines: readonly (readonly unknown[])[]): string =>
  lines.map((cells) => `${cells.map(csvField).join(',')}\n`).join('');

/** Rows with the same keys as CSV with a header; `emptyRow` has the keys if there are no rows. */
export const csvRows = (rows: readonly object[], emptyRow: object = {}): string =>
  csvLines([Object.keys(rows[0] ?? emptyRow), ...rows.map((row) => Object.values(row))]);

/** Tables that have rows. */
export async function tablesWithRows(database: SessionDatabase): Promise<TableName[]> {
  const nonEmptyTables: TableName[] = [];
  for (const table of tableNames) {
    const rows = await database.query(`SELECT 1 FROM ${table} LIMIT 1`);
    if (rows.length > 0) nonEmptyTables.push(table);
  }
  return nonEmptyTables;
}

/** One table as CSV with a header, by execution and time; integers keep every digit. */
export async function* tableCsv(database: SessionDatabase, table: TableName): AsyncGenerator<string> {
  const columns = Object.keys(tables[table].columns);
  yield `${columns.join(',')}\n`;
  const time = timeColumn(table);
  const order = ['execution_id', 'capture_id', ...(time ? [time] : [])].map((name) => `t."${name}"`);
  const select = `SELECT ${columnsAsText(table)} FROM ${table} t ORDER BY ${order.join(', ')}`;
  for await (const row of rowsOf<Record<string, unknown>>(database, select)) {
    yield `${columns.map((name) => csvField(row[name])).join(',')}\n`;
  }
}
