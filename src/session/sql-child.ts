import type { DuckDBConnection, DuckDBValueConverter, Json } from '@duckdb/node-api';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { InferscopeError, messageOf } from '../model/errors.js';
import { openDatabase, quote } from './database.js';
import { duckdb } from './duckdb.js';
import { openRemoteTables } from './remote.js';
import { asDamage } from './session-problem.js';
import { checkStatement, queryFailed } from './sql-check.js';
import { makeTables } from './made-tables.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import type { SqlDefinitions, SqlMessage, SqlRequest } from './sql-message.js';
import { createViews } from './views.js';

/**
 * Runs one query for `inferscope sql` in a child process, so that the parent can stop it after its time limit and its memory is separate.
 * stdin: a line with the SqlRequest, and one with SqlDefinitions after a `needs`; stdout: SqlMessage lines.
 */
async function main(): Promise<void> {
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })[Symbol.asyncIterator]();
  const line = async () => JSON.parse(String((await lines.next()).value));
  const request = (await line()) as SqlRequest;
  // The parent kills this process at its time limit; this is for a parent that cannot. exit() would wait for the query.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), (request.timeoutS + 10) * 1000).unref();
  const database = await openDatabase({
    memoryLimitBytes: request.memoryLimitBytes,
    spillFolder: request.spillFolder,
  });
  const { connection } = database;
  const sessions =
    request.remote === null ? request.sessions : [await openRemoteTables(connection, request.remote)];
  try {
    await createViews(connection, sessions, { withSessionId: true });
  } catch (error) {
    throw asDamage(error, sessions.map(({ id }) => id).join(', '));
  }
  const tableNames = await checkStatement(connection, request.sql);
  const names = request.derivedNames.filter((name) => tableNames.has(name));
  if (names.length > 0) {
    await send({ type: 'needs', names });
    const tables = (await line()) as SqlDefinitions;
    await makeTables({ query: (sql) => connection.run(sql) }, tables);
  }
  const result = await connection.stream(request.sql);
  const columns = result.deduplicatedColumnNames();
  const types = result.columnTypes().map(String);
  await send({ type: 'columns', columns: columns.map((name, i) => ({ name, type: types[i] ?? '' })) });

  const { JsonDuckDBValueConverter } = duckdb();
  const convert: DuckDBValueConverter<Json> = (value, type, converter) =>
    typeof value === 'bigint' ? integer(value) : JsonDuckDBValueConverter(value, type, converter);
  let rows = 0;
  let bytes = 0;
  for (;;) {
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) break;
    const remainingRows = request.maxRows - rows;
    const values = chunk.convertRows(convert).slice(0, remainingRows);
    rows += values.length;
    bytes += await send({ type: 'rows', rows: values });
    if (chunk.rowCount > remainingRows) {
      await send({ type: 'end', cut: 'rows' });
      return;
    }
    if (bytes > request.maxBytes) {
      await send({ type: 'end', cut: 'bytes' });
      return;
    }
  }
  if (bytes > bufferBytes / 8) await checkComplete(connection, request.sql, rows);
  await send({ type: 'end', cut: null });
}

/**
 * DuckDB's streaming_buffer_size. In DuckDB 1.5.5 a failure after the buffered rows of a stream looks like its end; one before it is
 * thrown. As text a value takes at least an eighth of its size in the buffer.
 */
const bufferBytes = 1_000_000;

/** @throws DuckDB's error if a statement had more rows than it returned */
async function checkComplete(connection: DuckDBConnection, sql: string, rows: number): Promise<void> {
  const rowCount = await connection.runAndReadAll(`SELECT count(*) FROM query(${quote(sql)})`);
  if (Number(rowCount.getRowsJS()[0]![0]) === rows) return;
  await connection.run(`SELECT max(COLUMNS(*)) FROM query(${quote(sql)})`);
  throw new Error('its rows ended before the last');
}

/** A JSON number if it is exact, else decimal text. */
function integer(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

/**
 * Writes a message and waits until the pipe has accepted it: a fast query must not buffer its result in this process, and queued output is
 * lost when the process exits.
 */
async function send(message: SqlMessage): Promise<number> {
  const line = `${JSON.stringify(message)}\n`;
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(line, (error) => (error ? reject(error) : resolve()));
  });
  return line.length;
}

function asInferscopeError(thrown: unknown): InferscopeError {
  const error = asStorageFailure(thrown, { path: tmpdir(), doing: 'run the query, which spills' });
  if (error instanceof InferscopeError) return error;
  const message = messageOf(error);
  if (/Out of Memory/i.test(message)) {
    return new InferscopeError('E_SQL_LIMIT', {
      what: 'sql: the query needs more memory than it may have',
      why: message.split('\n')[0] ?? message,
      fix: 'Select fewer columns, aggregate before joining, or raise it: --memory-limit 4GiB',
    });
  }
  return queryFailed(message);
}

try {
  await main();
  process.exit(0);
} catch (error) {
  const { code, parts } = asInferscopeError(error);
  await send({ type: 'error', code, parts });
  process.exit(1);
}
