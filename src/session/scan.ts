import type { DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import type { Batch, Columns } from '../model/workbench.js';

/** Streams a statement's result; every column must be numeric or boolean. */
export async function* scan(connection: DuckDBConnection, sql: string): AsyncGenerator<Batch> {
  const described = await connection.run(`DESCRIBE ${sql}`);
  const names = (await described.getRowsJS()).map(([name]) => String(name));
  // coalesce: the values of a null in DuckDB's vectors are undefined.
  const select = names.map((name) => `coalesce(CAST("${name}" AS DOUBLE), 'nan') AS "${name}"`);
  const result = await connection.stream(`SELECT ${select.join(', ')} FROM (${sql})`);
  for (;;) {
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) return;
    const columns: Columns = {};
    names.forEach((name, c) => {
      columns[name] = doubles(chunk, c);
    });
    yield { rows: chunk.rowCount, columns };
  }
}

/**
 * As scan, of at least `rows` rows.
 * @throws what DuckDB says of rows that it cannot read: of its stream (our pin, 1.5.5) a failure is merely the end
 */
export async function* scanAll(
  connection: DuckDBConnection,
  { sql, rows }: { sql: string; rows: number },
): AsyncGenerator<Batch> {
  let seen = 0;
  for await (const batch of scan(connection, sql)) {
    seen += batch.rows;
    yield batch;
  }
  if (seen >= rows) return;
  await connection.run(`SELECT max(COLUMNS(*)) FROM (${sql})`);
  throw new Error(`only ${seen} of ${rows} rows could be read: ${sql}`);
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
