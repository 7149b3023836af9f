import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Row, type TableName, type TableSink, tableNames, tables } from '../model/tables.js';
import { openDatabase, quote } from './database.js';
import { duckdb } from './duckdb.js';
import { capturePath, type StagedFile } from './staged-file.js';
import { createChunkBuffer, type ChunkBuffer, parquetExpression } from './staging-columns.js';
import { createWorkbench, type OpenWorkbench } from './workbench.js';

/** Rows on their way to Parquet: stored in columns by DuckDB, which spills them when memory is short. */
interface Staging {
  sink: TableSink;
  workbench: OpenWorkbench;
  /** Rows appended to a table so far. */
  rows(table: TableName): number;
  /**
   * Writes tables/<table>/<capture_id>.parquet for each table and capture with rows, except for captures that are left out. No rows can be
   * appended afterwards.
   * @returns these files and those of the workbench
   */
  writeParquet(leftOut?: ReadonlySet<string>): Promise<StagedFile[]>;
  close(): Promise<void>;
}

/** About four million kernel rows; with more DuckDB spills. The measured workload needs the other memory. */
const stagingMemoryBytes = 768 * 2 ** 20;

interface Staged {
  buffer: ChunkBuffer;
  appender: DuckDBAppender;
}

/**
 * Opens the staging database. Every table is prepared at once, because importers append synchronously, and preparing in DuckDB is
 * asynchronous.
 */
export async function createStaging(
  { folder, spillFolder }: { folder: string; spillFolder: string },
  memoryLimitBytes: number = stagingMemoryBytes,
): Promise<Staging> {
  const database = await openDatabase({ spillFolder, memoryLimitBytes });
  const { connection } = database;
  const dictionary = new Map<string, number>();
  const staged = new Map<TableName, Staged>();
  const buffers = tableNames.map((table) => {
    const buffer = createChunkBuffer(
      table,
      Object.entries(tables[table].columns),
      dictionary,
      duckdb(),
      (chunk) => staged.get(table)!.appender.appendDataChunk(chunk),
    );
    return { table, buffer };
  });
  await connection.run(
    buffers.map(({ table, buffer }) => `CREATE TABLE "${table}" (${buffer.definition})`).join(';\n'),
  );
  for (const { table, buffer } of buffers)
    staged.set(table, { buffer, appender: await connection.createAppender(table) });
  // A lookup by a constant property per row is measurably cheaper than a Map.
  const byName = Object.fromEntries(staged) as Record<TableName, Staged>;
  const workbench = createWorkbench(database.instance, await database.instance.connect(), duckdb(), folder);

  return {
    sink: {
      append<T extends TableName>(table: T, row: Row<T>): void {
        byName[table].buffer.append(row as Record<string, unknown>);
      },
    },
    workbench,
    rows: (table) => byName[table].buffer.rows(),
    async writeParquet(leftOut = new Set()) {
      const files = workbench.stagedFiles().filter(({ capture_id: id }) => !leftOut.has(id));
      for (const { buffer, appender } of staged.values()) {
        buffer.flush();
        appender.closeSync();
      }
      await publishDictionary(connection, dictionary);
      for (const [table, { buffer }] of staged) {
        for (const captureId of buffer.captureIds()) {
          if (leftOut.has(captureId)) continue;
          files.push(await writeTable(connection, folder, table, captureId, dictionary.get(captureId) ?? 0));
        }
      }
      return files;
    },
    close: async () => {
      await workbench.close();
      await database.close();
    },
  };
}

/** Passes the texts of the coded columns to DuckDB, as the list that the expressions of the Parquet query index. */
async function publishDictionary(
  connection: DuckDBConnection,
  dictionary: Map<string, number>,
): Promise<void> {
  await connection.run('CREATE TABLE dictionary (text VARCHAR)');
  const appender = await connection.createAppender('dictionary');
  for (const text of dictionary.keys()) {
    appender.appendVarchar(text);
    appender.endRow();
  }
  appender.closeSync();
  await connection.run('SET VARIABLE dictionary = (SELECT list(text) FROM dictionary)');
}

async function writeTable(
  connection: DuckDBConnection,
  folder: string,
  table: TableName,
  captureId: string,
  captureCode: number,
): Promise<StagedFile> {
  const path = capturePath(table, captureId);
  await mkdir(join(folder, 'tables', table), { recursive: true });
  const select = Object.entries(tables[table].columns).map(
    ([name, column]) => `${parquetExpression(name, column.type)} AS "${name}"`,
  );
  const result = await connection.run(
    `COPY (SELECT ${select.join(', ')} FROM "${table}" WHERE capture_id = ${captureCode})
     TO ${quote(join(folder, path))} (FORMAT parquet, COMPRESSION zstd)`,
  );
  return { table, capture_id: captureId, path, rows: result.rowsChanged };
}
