import type { Workbench } from '../../model/workbench.js';

/**
 * DuckDB writes the whole dictionary of an ENUM into each row group: with very many texts VARCHAR is smaller.
 */
const enumTexts = 20_000;

/**
 * Creates table `name` (code INTEGER, text) with the texts of trace_names that `codes` selects (a column `code`). The text
 * is an ENUM where possible, which Parquet stores by its dictionary: 3.7 M kernel names of 400 letters then take no noticeable
 * time, instead of 1.2 s as text.
 */
export async function createTextTable(workbench: Workbench, name: string, codes: string): Promise<void> {
  await workbench.run(
    `CREATE TABLE ${name} AS SELECT n.code::INTEGER AS code, n.text FROM trace_names n
     SEMI JOIN (${codes}) used ON used.code = n.code`,
  );
  const [count] = await workbench.query<{ n: number }>(`SELECT count(DISTINCT text) AS n FROM ${name}`);
  if (count!.n === 0 || count!.n > enumTexts) return;
  await convertToEnum(workbench, name);
}

/** Converts the texts of a table (code, text) to an ENUM. */
export async function convertToEnum(workbench: Workbench, name: string): Promise<void> {
  await workbench.run(`CREATE TYPE ${name}_type AS ENUM (SELECT DISTINCT text FROM ${name} ORDER BY text)`);
  await workbench.run(`ALTER TABLE ${name} ALTER text TYPE ${name}_type`);
}

type IntegerType = 'INTEGER' | 'BIGINT' | 'UTINYINT';

/** A double as an integer; NaN (null in tables filled in bulk) and out-of-range values become null. */
export function integer(column: string, type: IntegerType = 'BIGINT'): string {
  return `TRY_CAST(nullif(${column}, 'nan'::DOUBLE) AS ${type})`;
}

/** Like `integer`, for columns of a trace table, which are already integers if an importer filled the table by SQL. */
export async function integersOf(
  workbench: Workbench,
  table: string,
  alias: string,
): Promise<(column: string, type?: IntegerType) => string> {
  const columns = await workbench.query<{ name: string }>(
    `SELECT column_name AS name FROM duckdb_columns() WHERE table_name = '${table}' AND data_type = 'DOUBLE'`,
  );
  const doubles = new Set(columns.map(({ name }) => name));
  return (column, type = 'BIGINT') =>
    doubles.has(column) ? integer(`${alias}."${column}"`, type) : `TRY_CAST(${alias}."${column}" AS ${type})`;
}
