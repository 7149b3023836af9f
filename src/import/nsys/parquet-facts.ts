import { createRequire } from 'node:module';
// Facts are asked for before there is a session whose workbench could read them.
import type * as DuckDB from '@duckdb/node-api';
import { damaged } from './damage.js';
import type { ReadTable } from './facts.js';
import { checkParquetdir, parquetTable } from './parquetdir.js';
import { messageOf } from '../../model/errors.js';

/** `require`: as session/duckdb.ts, which importers may not import. */
const duckdb = () => createRequire(import.meta.url)('@duckdb/node-api') as typeof DuckDB;

/** Small tables of a folder without a workbench. Call `close` at the end. */
export async function openParquetFacts(folder: string): Promise<{ read: ReadTable; close(): Promise<void> }> {
  checkParquetdir(folder);
  const { DuckDBInstance } = duckdb();
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  });
  const connection = await instance.connect();
  const running = new Set<Promise<unknown>>();
  let closed = false;
  const read: ReadTable = async (table, columns) => {
    const source = parquetTable(folder, table);
    if (!source) return [];
    try {
      const described = await connection.run(`DESCRIBE SELECT * FROM ${source}`);
      const present = new Set((await described.getRowsJS()).map(([name]) => String(name)));
      const list = columns.map((name) => (present.has(name) ? `"${name}"` : 'NULL'));
      const result = await connection.run(`SELECT ${list.join(', ')} FROM ${source}`);
      return (await result.getRowsJS()).map((row) =>
        row.map((value) =>
          typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? value : null,
        ),
      );
    } catch (error) {
      throw damaged(folder, `${table}.parquet is no whole Parquet file (${messageOf(error)}).`, error);
    }
  };
  return {
    read(table, columns) {
      if (closed) return Promise.reject(new Error('the folder is closed'));
      const reading = read(table, columns);
      running.add(reading);
      return reading.finally(() => running.delete(reading));
    },
    /** Waits for what is read: DuckDB crashes when a connection is closed under its statement. */
    async close() {
      closed = true;
      await Promise.allSettled(running);
      connection.closeSync();
      instance.closeSync();
    },
  };
}
