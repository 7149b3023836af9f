import type { DuckDBAppender, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type * as DuckDB from '@duckdb/node-api';
import { join } from 'node:path';
import type { TableName } from '../model/tables.js';
import type { BulkWriter, SavedColumnsWriter, Workbench } from '../model/workbench.js';
import { quote } from './database.js';
import { memoryLimit } from './memory-limit.js';
import { inMemoryTables } from './parquet/in-memory-tables.js';
import { writeTable } from './parquet/write-table.js';
import { queryRows } from './query.js';
import { doubles } from './scan.js';
import type { StagedFile } from './staged-file.js';
import { stagedFiles } from './staged-files.js';
import { columnExpressions, columnsOf, fileColumns, type Constants } from './workbench-columns.js';
import { workbenchStatements } from './workbench-statements.js';

/** DuckDB's chunk size. */
const chunkRows = 2048;

/**
 * Maximum distinct values of a dictionary. Names have some hundred, times and ids as many as there are rows: trying those takes a third of
 * the time to write a table and saves no space.
 */
const maxDictionaryValues = 4096;

export interface OpenWorkbench extends Workbench {
  /** Files that were written. */
  stagedFiles(): StagedFile[];
  close(): Promise<void>;
}

/** @param folder of the session being written; Parquet files go into its tables/ */
export function createWorkbench(
  instance: DuckDBInstance,
  connection: DuckDBConnection,
  duckdb: typeof DuckDB,
  folder: string,
): OpenWorkbench {
  const files = stagedFiles(folder);
  const memory = memoryLimit(connection);
  const inMemory = inMemoryTables();
  const statements = workbenchStatements(instance, connection, memory);
  return {
    stagedFiles: () => files.written,
    close: () => statements.close(() => inMemory.close()),
    async run(sql) {
      await statements.withMemory(() => connection.run(sql));
    },
    query: <T extends object>(sql: string) => statements.withMemory(() => queryRows<T>(connection, sql, [])),
    scan: statements.scan,
    scanFiles: statements.scanFiles,
    async createTable(name, columns) {
      const definition = columns.map((column) => `"${column}" DOUBLE`).join(', ');
      await connection.run(`CREATE TABLE "${name}" (${definition})`);
      return bulkWriter(await connection.createAppender(name), columns, duckdb);
    },
    createNames: (name, texts) => createNames(connection, name, texts),
    async save(table, captureId, select, constants) {
      const file = await files.claim(table, captureId);
      const rows = await statements.withConnection(async (ownConnection) => {
        const columns = await columnsOfSelect(ownConnection, table, select, {
          ...constants,
          capture_id: captureId,
        });
        const result = await statements.withMemory(() =>
          ownConnection.run(
            `COPY (SELECT ${columns.join(', ')} FROM (${select}))
             TO ${quote(join(folder, file.path))} (FORMAT parquet, COMPRESSION zstd, DICTIONARY_SIZE_LIMIT ${maxDictionaryValues})`,
          ),
        );
        return result.rowsChanged;
      });
      files.written.push({ ...file, rows });
      return rows;
    },
    async saveColumns(table, captureId, columns, constants): Promise<SavedColumnsWriter> {
      const file = await files.claim(table, captureId);
      const specs = fileColumns(table, columns, { ...constants, capture_id: captureId });
      const { writer, written } = writeTable(join(folder, file.path), specs);
      files.addWhen(written, file);
      return writer;
    },
    async saveInMemory(table, captureId, rows, constants) {
      const file = await files.claim(table, captureId);
      const target = inMemory.open(join(folder, file.path), rows);
      files.addWhen(target.written, file);
      const constantColumns: Constants = { ...constants, capture_id: captureId };
      return {
        add(part) {
          const partColumns = columnsOf(part.columns(part.input));
          Object.assign(constantColumns, partColumns.constantColumns);
          const columns = fileColumns(table, partColumns.columns, {});
          target.add(
            columns.filter(({ name }) => name in partColumns.columns),
            part,
          );
        },
        close: () => target.close(fileColumns(table, {}, constantColumns)),
      };
    },
    savedRows: (table, captureIds) => files.rowsOf(table, captureIds),
    async flush() {
      await inMemory.help();
      await files.finish();
    },
    async limit({ threads, memory_bytes: bytes, return_pages: returnPages }) {
      if (threads !== undefined) await connection.run(`SET threads = ${threads}`);
      if (bytes !== undefined) await memory.set(bytes);
      if (returnPages !== undefined)
        await connection.run(`SET allocator_background_threads = ${returnPages}`);
    },
  };
}

/** Creates a table of texts with their codes, from 0 on. */
async function createNames(
  connection: DuckDBConnection,
  name: string,
  texts: Iterable<string>,
): Promise<void> {
  await connection.run(`CREATE TABLE "${name}" (code BIGINT, text VARCHAR)`);
  const appender = await connection.createAppender(name);
  let code = 0n;
  for (const text of texts) {
    appender.appendBigInt(code++);
    appender.appendVarchar(text.replaceAll('\0', '\u2400'));
    appender.endRow();
  }
  appender.closeSync();
}

/** SQL of each column of the model's table from a statement's columns. */
async function columnsOfSelect(
  connection: DuckDBConnection,
  table: TableName,
  select: string,
  constants: Constants,
): Promise<string[]> {
  const described = await connection.run(`DESCRIBE ${select}`);
  const types = new Map((await described.getRowsJS()).map(([name, type]) => [String(name), String(type)]));
  return columnExpressions(table, types, constants);
}

function bulkWriter(appender: DuckDBAppender, names: readonly string[], duckdb: typeof DuckDB): BulkWriter {
  const types = names.map(() => duckdb.DOUBLE);
  return {
    append(columns, rows) {
      for (let from = 0; from < rows; from += chunkRows) {
        const to = Math.min(rows, from + chunkRows);
        const chunk = duckdb.DuckDBDataChunk.create(types, to - from);
        names.forEach((name, c) => {
          const source = columns[name];
          if (source) doubles(chunk, c).set(source.subarray(from, to));
          else doubles(chunk, c).fill(Number.NaN);
          chunk.getColumnVector(c).flush();
        });
        appender.appendDataChunk(chunk);
      }
    },
    close: () => appender.closeSync(),
  };
}
