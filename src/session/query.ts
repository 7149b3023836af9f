import type { DuckDBConnection, DuckDBValueConverter, JS } from '@duckdb/node-api';
import type { Batch } from '../model/workbench.js';
import { duckdb } from './duckdb.js';

export type Parameter = string | number | boolean | null;

/** Read access to the tables of one or more sessions. */
export interface SessionDatabase {
  /**
   * Runs one statement. BIGINT and HUGEINT become JS numbers, dates ISO 8601 text.
   * @param parameters values for $1, $2, …
   * @throws RangeError when an integer is above 2^53 and would lose digits
   */
  query<T extends object = Record<string, unknown>>(sql: string, parameters?: Parameter[]): Promise<T[]>;
  /** Streams the rows of one statement as columns of doubles, with NaN for null: every column must be numeric or boolean. */
  scan(sql: string): AsyncIterable<Batch>;
  /**
   * Creates the temporary view `name` with the statement's rows, which are computed once for all connections to the session: analyses of
   * one session share the same tables.
   * @param key what the rows depend on in addition to the name
   */
  once(name: string, key: string, sql: string): Promise<void>;
  close(): Promise<void>;
}

/** An integer as a JS number, if it is exact. */
function exactNumber(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    throw new RangeError(
      `${value} is beyond 2^53 and has no exact JS number; cast it to DOUBLE or VARCHAR in the query`,
    );
  }
  return number;
}

export async function queryRows<T extends object>(
  connection: DuckDBConnection,
  sql: string,
  parameters: Parameter[],
): Promise<T[]> {
  // A statement with parameters is prepared first, which is noticeable for a short statement.
  if (parameters.length === 0)
    return (await (await connection.run(sql)).convertRowObjects(plainConverter)) as T[];
  const { VARCHAR, BOOLEAN, SQLNULL, BIGINT, DOUBLE } = duckdb();
  const types = parameters.map((value) => {
    if (typeof value === 'string') return VARCHAR;
    if (typeof value === 'boolean') return BOOLEAN;
    if (value === null) return SQLNULL;
    return Number.isSafeInteger(value) ? BIGINT : DOUBLE;
  });
  const values = parameters.map((value, i) => (types[i] === BIGINT ? BigInt(value as number) : value));
  const result = await connection.run(sql, values, types);
  const rows = await result.convertRowObjects(plainConverter);
  return rows as T[];
}

const plainConverter: DuckDBValueConverter<JS> = (value, type, converter) => {
  if (typeof value === 'bigint') return exactNumber(value);
  const plain = duckdb().JSDuckDBValueConverter(value, type, converter);
  if (typeof plain === 'bigint') return exactNumber(plain);
  return plain instanceof Date ? plain.toISOString() : plain;
};
