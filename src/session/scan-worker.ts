import { duckdb } from './duckdb.js';
import { scan } from './scan.js';
import { sendBatches } from './scan-thread.js';

// Built as dist/scan-worker.js: a thread that reads a large file with a database of its own.
const instance = await duckdb().DuckDBInstance.create(':memory:', {
  threads: '1',
  memory_limit: '256MiB',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
});
const connection = await instance.connect();
await sendBatches((sql) => scan(connection, sql));
