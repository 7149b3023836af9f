import type { SessionDatabase } from '../session/query.js';
import { tables, type TableName } from '../model/tables.js';

/** Rows in memory at a time: a page of a table with shapes in text is a few MiB. */
const pageRows = 20_000;
let materialized = 0;

/**
 * Rows of a SELECT in its order, page by page. DuckDB stores the ordered result (and spills it to its temporary folder), so that a page
 * needs no further sort.
 */
export async function* rowsOf<T extends object>(
  database: SessionDatabase,
  select: string,
): AsyncGenerator<T> {
  const table = `export_${materialized++}`;
  await database.query(`CREATE TEMP TABLE ${table} AS ${select}`);
  try {
    const [total] = await database.query<{ n: number }>(`SELECT count(*) AS n FROM ${table}`);
    for (let from = 0; from < (total?.n ?? 0); from += pageRows) {
      yield* await database.query<T>(
        `SELECT * FROM ${table} WHERE rowid >= ${from} AND rowid < ${from + pageRows} ORDER BY rowid`,
      );
    }
  } finally {
    await database.query(`DROP TABLE ${table}`);
  }
}

/** Columns of a table with integers as decimal text: ids and device contexts may exceed 2^53. */
export function columnsAsText(table: TableName, columns = Object.keys(tables[table].columns)): string {
  const types = tables[table].columns as Record<string, { type: string }>;
  return columns
    .map((name) => (types[name]?.type === 'BIGINT' ? `CAST("${name}" AS VARCHAR) AS "${name}"` : `"${name}"`))
    .join(', ');
}

/** The column that orders a table by time; null for tables without time. */
export function timeColumn(table: TableName): string | null {
  return ['start_ns', 't_ns', 'sent_ns'].find((name) => name in tables[table].columns) ?? null;
}
