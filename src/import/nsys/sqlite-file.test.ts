import Database from 'libsql';
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openSqlite, readRows } from './sqlite-file.js';

const fixtures = 'test/fixtures/nsys-2025.3.1-h200';
const files = readdirSync(fixtures).filter((name) => name.endsWith('.sqlite'));

test.each(files)("every value but blobs in every table of %s equals SQLite's", (name) => {
  const path = `${fixtures}/${name}`;
  const file = openSqlite(path);
  const oracle = new Database(path, { readonly: true });
  const tables = oracle.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").raw().all() as [
    string,
  ][];
  expect([...file.tables.keys()]).toEqual(tables.map(([table]) => table));
  let values = 0;
  for (const [table] of tables) {
    const { columns } = file.tables.get(table)!;
    const tableInfo = oracle.prepare(`PRAGMA table_info("${table}")`).all() as { name: string }[];
    expect(columns).toEqual(tableInfo.map((column) => column.name));
    const rows = oracle.prepare(`SELECT * FROM "${table}"`).raw().safeIntegers(true);
    const expected = (rows.all() as unknown[][]).map((row) => row.map(plainValue));
    const actual = [...readRows(file, table, columns)];
    expect(actual, table).toEqual(expected);
    values += actual.length * columns.length;
  }
  file.close();
  oracle.close();
  expect(values).toBeGreaterThan(1000);
});

/** SQLite's value as readRows returns it: a bigint only if a double is not exact, null for a blob. */
function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) return Number(value);
  return value instanceof Uint8Array ? null : value;
}
