import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { availableParallelism, freemem, totalmem } from 'node:os';
import process from 'node:process';
import { duckdb } from './duckdb.js';
import { createScratchFolder } from './scratch-folder.js';

export interface Database {
  instance: DuckDBInstance;
  connection: DuckDBConnection;
  /** Closes DuckDB and removes its spill files. */
  close(): Promise<void>;
}

interface DatabaseOptions {
  /** Folder for DuckDB's spill files; default: a new temporary folder, removed on close. */
  spillFolder?: string;
  memoryLimitBytes?: number;
  /** Maximum; also limited by the cores available to the process. */
  threads?: number;
}

/**
 * A quarter of the memory, at most 2 GiB or what is free now, at least 256 MiB: DuckDB's limit does not cover the whole process (vectors, Parquet pages and V8 are added), and a
 * workload may be running at the same time.
 */
function defaultMemoryLimitBytes(): number {
  return Math.max(256 * 2 ** 20, Math.min(2 * 2 ** 30, totalmem() / 4, freemem()));
}

/**
 * DuckDB starts a thread for every core of the machine, even if this process may use only two, and each takes about ten megabytes; above
 * four threads our queries are hardly faster.
 */
const maxThreads = 4;
/** This variable lowers the number: unit tests query small tables, where a second thread costs more than it saves. */
const threadsVariable = 'INFERSCOPE_DUCKDB_THREADS';

/** SQL string literal. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** An in-memory DuckDB that never downloads extensions. The binding is loaded here, so that commands without it start fast. */
export async function openDatabase(options: DatabaseOptions = {}): Promise<Database> {
  const { DuckDBInstance } = duckdb();
  const scratchFolder = options.spillFolder ? null : createScratchFolder();
  const limit = Math.round((options.memoryLimitBytes ?? defaultMemoryLimitBytes()) / 2 ** 20);
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    memory_limit: `${limit}MiB`,
    threads: String(
      Math.min(
        options.threads ?? maxThreads,
        Number(process.env[threadsVariable] ?? Infinity),
        availableParallelism(),
      ),
    ),
    temp_directory: options.spillFolder ?? scratchFolder?.path ?? '',
  });
  const connection = await instance.connect();
  return {
    instance,
    connection,
    close: async () => {
      connection.closeSync();
      instance.closeSync();
      scratchFolder?.remove();
    },
  };
}

/** Restricts this database to the given files; no later statement can change that. Spilling to its temporary folder still works. */
export async function restrictTo(connection: DuckDBConnection, files: string[]): Promise<void> {
  await connection.run(`SET allowed_paths = [${files.map(quote).join(', ')}]`);
  await connection.run('SET enable_external_access = false');
  await connection.run('SET lock_configuration = true');
}
