import type { DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import type { Batch, Columns } from '../model/workbench.js';

/** What the row behind the last has in its first column: no time or count is it. */
const end = Number.NEGATIVE_INFINITY;

/**
 * Streams a statement's result; every column must be numeric or boolean.
 * A failure in the middle of a stream looks to its reader like the end (our pin, 1.5.5): rows that cannot be read,
 * memory that does not suffice. So a row is put behind the last, and without it the stream has failed.
 * @throws what DuckDB says of the statement
 */
export async function* scan(connection: DuckDBConnection, sql: string): AsyncGenerator<Batch> {
  const described = await connection.run(`DESCRIBE ${sql}`);
  const names = (await described.getRowsJS()).map(([name]) => String(name));
  // coalesce: the values of a null in DuckDB's vectors are undefined.
  const select = names.map((name) => `coalesce(CAST("${name}" AS DOUBLE), 'nan') AS "${name}"`);
  const last = names.map(() => `'-inf'::DOUBLE`);
  const result = await connection.stream(
    `SELECT ${select.join(', ')} FROM (${sql}) UNION ALL SELECT ${last.join(', ')}`,
  );
  for (;;) {
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) break;
    const columns: Columns = {};
    names.forEach((name, c) => {
      columns[name] = doubles(chunk, c);
    });
    const rows = chunk.rowCount;
    if (columns[names[0]!]![rows - 1] === end) {
      if (rows > 1) yield { rows: rows - 1, columns };
      return;
    }
    yield { rows, columns };
  }
  await connection.run(`SELECT max(COLUMNS(*)) FROM (${sql})`);
  throw new Error(`the rows of a statement ended before its last: ${sql}`);
}

/**
 * The memory of a DOUBLE vector. `items` is a private field of DuckDBDoubleVector (our pin, 1.5.5): its public way,
 * a call and a BigInt bit operation a value, is ten times slower. workbench.test.ts fails when a new pin moves it.
 */
export function doubles(chunk: DuckDBDataChunk, column: number): Float64Array {
  const { items: values } = chunk.getColumnVector(column) as unknown as { items: unknown };
  if (!(values instanceof Float64Array)) throw new Error('DuckDBDoubleVector.items is not a Float64Array');
  return values;
}
