import type { InMemoryColumns, SavedColumn } from '../model/workbench.js';
import { type TableName, tables } from '../model/tables.js';
import { quote } from './database.js';
import type { FileColumn } from './parquet/file-column.js';

/** Columns with one value in all rows. */
export type Constants = Record<string, string | number | null>;

/** Columns given row by row, by the first column of each source, and columns with one value. */
export function columnsOf(inMemory: InMemoryColumns): {
  columns: Record<string, SavedColumn>;
  constantColumns: Constants;
} {
  const columns: Record<string, SavedColumn> = {};
  const constantColumns: Constants = {};
  const names = new Map<object, string>();
  for (const [name, column] of Object.entries(inMemory)) {
    if (typeof column !== 'object' || column === null) {
      constantColumns[name] = column;
      continue;
    }
    const { source, ...rest } = column;
    if (!names.has(source)) names.set(source, name);
    columns[name] = { from: names.get(source)!, ...rest };
  }
  return { columns, constantColumns };
}

/** The file column of each column of the model's table: given by row, constant, or null. */
export function fileColumns(
  table: TableName,
  columns: Record<string, SavedColumn>,
  constants: Constants,
): FileColumn[] {
  checkNames(table, [...Object.keys(columns), ...Object.keys(constants)]);
  return Object.entries(tables[table].columns).map(([name, { type }]) => {
    const constant = constants[name] ?? null;
    const savedColumn = columns[name];
    if (savedColumn && !(name in constants)) return { name, type, texts: [], ...savedColumn };
    if (typeof constant === 'string') return { name, type, texts: [constant], constant: 0 };
    return { name, type, texts: [], constant };
  });
}

function checkNames(table: TableName, names: string[]): void {
  const unknown = names.filter((name) => !(name in tables[table].columns));
  if (unknown.length > 0) throw new Error(`table ${table} has no column ${unknown.join(', ')}`);
}

/** SQL of each column of the model's table from the columns of the select, cast to the schema's type; NaN becomes null. */
export function columnExpressions(
  table: TableName,
  types: Map<string, string>,
  constants: Constants,
): string[] {
  checkNames(table, [...types.keys(), ...Object.keys(constants)]);
  return Object.entries(tables[table].columns).map(([name, { type }]) => {
    const constant = constants[name];
    const from = types.get(name);
    let value = 'NULL';
    if (typeof constant === 'string') value = quote(constant);
    else if (typeof constant === 'number') value = String(constant);
    else if (from === 'DOUBLE' || from === 'FLOAT')
      value = `CASE WHEN isnan("${name}") THEN NULL ELSE "${name}" END`;
    // An ENUM is written to Parquet by its dictionary; as VARCHAR each row's text would be hashed again (10 times slower).
    else if (from?.startsWith('ENUM') && type === 'VARCHAR') return `"${name}"`;
    else if (from !== undefined) value = `"${name}"`;
    return `CAST(${value} AS ${type}) AS "${name}"`;
  });
}
