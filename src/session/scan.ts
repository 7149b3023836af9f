import type { DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import type { Batch, Columns } from '../model/workbench.js';

/** Marks the end in the first column of an extra last row: it is neither a time nor a count. */
const endMark = Number.NEGATIVE_INFINITY;

/**
 * Streams a statement's result; every column must be numeric or boolean. In DuckDB 1.5.5 a failure in the middle of a stream (unreadable
 * rows, out of memory) looks like its end. An extra row is therefore appended: without it the stream has failed.
 * @param canRetry called with a failure; returns true if a retry may succeed, and the rows then continue where they stopped
 * @throws DuckDB's error of the statement
 */
export async function* scan(
  connection: DuckDBConnection,
  sql: string,
  canRetry: (error: unknown) => Promise<boolean> = () => Promise.resolve(false),
): AsyncGenerator<Batch> {
  const described = await connection.run(`DESCRIBE ${sql}`);
  const names = (await described.getRowsJS()).map(([name]) => String(name));
  // coalesce, since a null in DuckDB's vectors is undefined.
  const select = names.map((name) => `coalesce(CAST("${name}" AS DOUBLE), 'nan') AS "${name}"`);
  const last = names.map(() => `'-inf'::DOUBLE`);
  for (let rowsRead = 0; ;) {
    try {
      const remainingSql = rowsRead === 0 ? sql : `SELECT * FROM (${sql}) OFFSET ${rowsRead}`;
      const result = await connection.stream(
        `SELECT ${select.join(', ')} FROM (${remainingSql}) UNION ALL SELECT ${last.join(', ')}`,
      );
      for (;;) {
        const chunk = await result.fetchChunk();
        if (!chunk || chunk.rowCount === 0) break;
        const columns: Columns = {};
        names.forEach((name, c) => {
          columns[name] = doubles(chunk, c);
        });
        const isLast = columns[names[0]!]![chunk.rowCount - 1] === endMark;
        const rows = isLast ? chunk.rowCount - 1 : chunk.rowCount;
        rowsRead += rows;
        if (rows > 0) yield { rows, columns };
        if (isLast) return;
      }
      await connection.run(`SELECT max(COLUMNS(*)) FROM (${sql})`);
      throw new Error(`the rows of a statement ended before its last: ${sql}`);
    } catch (error) {
      if (!(await canRetry(error))) throw error;
    }
  }
}

/**
 * The memory of a DOUBLE vector. `items` is a private field of DuckDBDoubleVector (1.5.5); the public API, with a call and a BigInt bit
 * operation per value, is ten times slower. workbench.test.ts fails if a new version moves the field.
 */
export function doubles(chunk: DuckDBDataChunk, column: number): Float64Array {
  const { items: values } = chunk.getColumnVector(column) as unknown as { items: unknown };
  if (!(values instanceof Float64Array)) throw new Error('DuckDBDoubleVector.items is not a Float64Array');
  return values;
}
