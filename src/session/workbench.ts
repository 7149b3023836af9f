import type { DuckDBAppender, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type * as DuckDB from '@duckdb/node-api';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../model/errors.js';
import { type TableName, tables } from '../model/tables.js';
import type {
  Batch,
  BulkWriter,
  FileScan,
  InMemoryColumns,
  SavedColumn,
  SavedColumnsWriter,
  RowTaker,
  Workbench,
} from '../model/workbench.js';
import { quote } from './database.js';
import type { Digest } from './digest.js';
import type { FileColumn } from './parquet/file-column.js';
import { inMemoryTables } from './parquet/in-memory-tables.js';
import { writeTable } from './parquet/write-table.js';
import { queryRows } from './query.js';
import { doubles, scan } from './scan.js';
import { type ScanThread, startScanThread } from './scan-thread.js';
import { capturePath, checkCaptureId, type StagedFile } from './staged-file.js';

/** DuckDB's chunk size. */
const chunkRows = 2048;

/**
 * Maximum distinct values of a dictionary. Names have some hundred, times and ids as many as there are rows: trying those takes a third of
 * the time to write a table and saves no space.
 */
const maxDictionaryValues = 4096;

/** Smaller files are read before a thread has started. */
const scanThreadFromRows = 500_000;

/** Maximum factor by which the memory limit is raised. */
const maxRaiseFactor = 4;

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
  const stagedFiles: StagedFile[] = [];
  const pendingWrites: Promise<void>[] = [];
  const inMemory = inMemoryTables();
  const scans: ScanThread[] = [];
  const running = new Set<Promise<unknown>>();
  /** Connections with statements to interrupt when the workbench closes. */
  const connections = new Set([connection]);
  async function claimPath(table: TableName, captureId: string): Promise<string> {
    checkCaptureId(table, captureId);
    const path = capturePath(table, captureId);
    if (stagedFiles.some((file) => file.path === path)) throw new Error(`${path} is saved already`);
    await mkdir(join(folder, 'tables', table), { recursive: true });
    return path;
  }
  /** `written` reports a failure; an unhandled rejection must not end the process before it is awaited. */
  function stageWhen(
    written: Promise<{ rows: number; digest: Digest }>,
    file: Pick<StagedFile, 'table' | 'capture_id' | 'path'>,
  ): void {
    const staged = (async () => {
      stagedFiles.push({ ...file, ...(await written) });
    })();
    staged.catch(() => {});
    pendingWrites.push(staged);
  }
  /** Closing a connection during its statement hangs DuckDB, so wait for it even if another statement fails. */
  async function trackUntilDone<T>(statement: Promise<T>): Promise<T> {
    running.add(statement);
    try {
      return await statement;
    } finally {
      running.delete(statement);
    }
  }
  /** Memory limit of the database; null: the initial one. */
  let memoryBytes: number | null = null;
  let raiseFactor = 1;
  /**
   * Raises the memory limit. DuckDB spills but may still need more at once; some megabytes more are better than a capture that cannot be
   * read.
   * @returns whether the limit was raised
   */
  async function raiseMemory(error: unknown): Promise<boolean> {
    if (
      memoryBytes === null ||
      raiseFactor >= maxRaiseFactor ||
      !/Out of Memory|ended before its last/.test(messageOf(error))
    )
      return false;
    raiseFactor *= 1.25;
    await setMemory(memoryBytes * raiseFactor);
    return true;
  }
  function setMemory(bytes: number) {
    const mebibytes = Math.round(bytes / 2 ** 20);
    return connection.run(`SET memory_limit = '${mebibytes}MiB'`);
  }
  async function withMemory<T>(statement: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await trackUntilDone(statement());
      } catch (error) {
        if (!(await raiseMemory(error))) throw error;
      }
    }
  }
  /** Runs on a new connection: a stream ends when another statement runs on its connection. */
  async function* onNewConnection(
    rows: (ownConnection: DuckDBConnection) => AsyncIterable<Batch>,
  ): AsyncGenerator<Batch> {
    const ownConnection = await instance.connect();
    try {
      yield* rows(ownConnection);
    } finally {
      ownConnection.closeSync();
    }
  }
  /** Runs on a new connection, so that statements of one table do not wait for those of another. */
  async function withConnection<T>(work: (ownConnection: DuckDBConnection) => Promise<T>): Promise<T> {
    const ownConnection = await instance.connect();
    connections.add(ownConnection);
    try {
      return await work(ownConnection);
    } finally {
      connections.delete(ownConnection);
      ownConnection.closeSync();
    }
  }
  return {
    stagedFiles: () => stagedFiles,
    async close() {
      // An interrupt has no effect on a statement that is about to start, so repeat it.
      const interruptTimer = setInterval(() => connections.forEach((open) => open.interrupt()), 20);
      await Promise.allSettled([
        ...running,
        inMemory.close(),
        ...scans.map((scanThread) => scanThread.close()),
      ]);
      clearInterval(interruptTimer);
      connection.closeSync();
    },
    async run(sql) {
      await withMemory(() => connection.run(sql));
    },
    query: <T extends object>(sql: string) => withMemory(() => queryRows<T>(connection, sql, [])),
    scan: (sql) => onNewConnection((ownConnection) => scan(ownConnection, sql, raiseMemory)),
    async scanFiles<T, R>(files: FileScan<T>, taker: (input: T) => RowTaker<R>) {
      if (files.rows >= scanThreadFromRows) {
        const thread = startScanThread(files);
        scans.push(thread);
        return (await thread.result) as R;
      }
      const { take, result } = taker(files.input);
      for await (const batch of onNewConnection((ownConnection) => scan(ownConnection, files.sql)))
        take(batch);
      return result();
    },
    async createTable(name, columns) {
      const definition = columns.map((column) => `"${column}" DOUBLE`).join(', ');
      await connection.run(`CREATE TABLE "${name}" (${definition})`);
      return bulkWriter(await connection.createAppender(name), columns, duckdb);
    },
    async createNames(name, texts) {
      await connection.run(`CREATE TABLE "${name}" (code BIGINT, text VARCHAR)`);
      const appender = await connection.createAppender(name);
      let code = 0n;
      for (const text of texts) {
        appender.appendBigInt(code++);
        appender.appendVarchar(text.replaceAll('\0', '\u2400'));
        appender.endRow();
      }
      appender.closeSync();
    },
    async save(table, captureId, select, constants) {
      const path = await claimPath(table, captureId);
      const rows = await withConnection(async (ownConnection) => {
        const described = await ownConnection.run(`DESCRIBE ${select}`);
        const types = new Map(
          (await described.getRowsJS()).map(([name, type]) => [String(name), String(type)]),
        );
        const columns = columnExpressions(table, types, { ...constants, capture_id: captureId });
        const result = await withMemory(() =>
          ownConnection.run(
            `COPY (SELECT ${columns.join(', ')} FROM (${select}))
             TO ${quote(join(folder, path))} (FORMAT parquet, COMPRESSION zstd, DICTIONARY_SIZE_LIMIT ${maxDictionaryValues})`,
          ),
        );
        return result.rowsChanged;
      });
      stagedFiles.push({ table, capture_id: captureId, path, rows });
      return rows;
    },
    async saveColumns(table, captureId, columns, constants): Promise<SavedColumnsWriter> {
      const path = await claimPath(table, captureId);
      const specs = fileColumns(table, columns, { ...constants, capture_id: captureId });
      const { writer, written } = writeTable(join(folder, path), specs);
      stageWhen(written, { table, capture_id: captureId, path });
      return writer;
    },
    async saveInMemory(table, captureId, rows, constants) {
      const path = await claimPath(table, captureId);
      const file = inMemory.open(join(folder, path), rows);
      stageWhen(file.written, { table, capture_id: captureId, path });
      const constantColumns: Constants = { ...constants, capture_id: captureId };
      return {
        add(part) {
          const partColumns = columnsOf(part.columns(part.input));
          Object.assign(constantColumns, partColumns.constantColumns);
          const columns = fileColumns(table, partColumns.columns, {});
          file.add(
            columns.filter(({ name }) => name in partColumns.columns),
            part,
          );
        },
        close: () => file.close(fileColumns(table, {}, constantColumns)),
      };
    },
    savedRows(table, captureIds) {
      const paths = stagedFiles
        .filter((file) => file.table === table && file.rows > 0 && captureIds.includes(file.capture_id))
        .map(({ path }) => quote(join(folder, path)));
      return paths.length === 0 ? null : `read_parquet([${paths.join(', ')}])`;
    },
    async flush() {
      await inMemory.help();
      await Promise.all(pendingWrites.splice(0));
    },
    async limit({ threads, memory_bytes: bytes, return_pages: returnPages }) {
      if (threads !== undefined) await connection.run(`SET threads = ${threads}`);
      if (bytes !== undefined) {
        memoryBytes = bytes;
        raiseFactor = 1;
        await setMemory(bytes);
      }
      if (returnPages !== undefined)
        await connection.run(`SET allocator_background_threads = ${returnPages}`);
    },
  };
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

type Constants = Record<string, string | number | null>;

/** Columns given row by row, by the first column of each source, and columns with one value. */
function columnsOf(inMemory: InMemoryColumns): {
  columns: Record<string, SavedColumn>;
  constantColumns: Constants;
} {
  const columns: Record<string, SavedColumn> = {};
  const constantColumns: Constants = {};
  const names = new Map<object, string>();
  for (const [name, column] of Object.entries(inMemory)) {
    if (typeof column !== 'object' || column === null) {
      constantColumns[name] = column;
      continue;
    }
    const { source, ...rest } = column;
    if (!names.has(source)) names.set(source, name);
    columns[name] = { from: names.get(source)!, ...rest };
  }
  return { columns, constantColumns };
}

/** The file column of each column of the model's table: given by row, constant, or null. */
function fileColumns(
  table: TableName,
  columns: Record<string, SavedColumn>,
  constants: Constants,
): FileColumn[] {
  checkNames(table, [...Object.keys(columns), ...Object.keys(constants)]);
  return Object.entries(tables[table].columns).map(([name, { type }]) => {
    const constant = constants[name] ?? null;
    const savedColumn = columns[name];
    if (savedColumn && !(name in constants)) return { name, type, texts: [], ...savedColumn };
    if (typeof constant === 'string') return { name, type, texts: [constant], constant: 0 };
    return { name, type, texts: [], constant };
  });
}

function checkNames(table: TableName, names: string[]): void {
  const unknown = names.filter((name) => !(name in tables[table].columns));
  if (unknown.length > 0) throw new Error(`table ${table} has no column ${unknown.join(', ')}`);
}

/** SQL of each column of the model's table from the columns of the select, cast to the schema's type; NaN becomes null. */
function columnExpressions(
  table: TableName,
  types: Map<string, string>,
  constants: Record<string, string | number | null>,
): string[] {
  checkNames(table, [...types.keys(), ...Object.keys(constants)]);
  return Object.entries(tables[table].columns).map(([name, { type }]) => {
    const constant = constants[name];
    const from = types.get(name);
    let value = 'NULL';
    if (typeof constant === 'string') value = quote(constant);
    else if (typeof constant === 'number') value = String(constant);
    else if (from === 'DOUBLE' || from === 'FLOAT')
      value = `CASE WHEN isnan("${name}") THEN NULL ELSE "${name}" END`;
    // An ENUM is written to Parquet by its dictionary; as VARCHAR each row's text would be hashed again (10 times slower).
    else if (from?.startsWith('ENUM') && type === 'VARCHAR') return `"${name}"`;
    else if (from !== undefined) value = `"${name}"`;
    return `CAST(${value} AS ${type}) AS "${name}"`;
  });
}
