import type { DuckDBConnection, DuckDBValueConverter, Json } from '@duckdb/node-api';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { InferscopeError, messageOf } from '../model/errors.js';
import { openDatabase, quote } from './database.js';
import { duckdb } from './duckdb.js';
import { remoteTables } from './remote.js';
import { asDamage } from './session-problem.js';
import { checkStatement, queryFailed } from './sql-check.js';
import { makeTables } from './made-tables.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import type { SqlDefinitions, SqlMessage, SqlRequest } from './sql-message.js';
import { createViews } from './views.js';

/**
 * Runs one query for `inferscope sql` in a process of its own, so that the parent can end it after its time and
 * its memory is not ours. stdin: a line with the SqlRequest, and one with SqlDefinitions after a `needs`; stdout: SqlMessage lines.
 */
async function main(): Promise<void> {
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })[Symbol.asyncIterator]();
  const line = async () => JSON.parse(String((await lines.next()).value));
  const request = (await line()) as SqlRequest;
  // The parent kills us at its time limit; this is for one that does not come to it. exit() would wait for the query.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), (request.timeoutS + 10) * 1000).unref();
  const database = await openDatabase({
    memoryLimitBytes: request.memoryLimitBytes,
    spillFolder: request.spillFolder,
  });
  const { connection } = database;
  const sessions =
    request.remote === null ? request.sessions : [await remoteTables(connection, request.remote)];
  try {
    await createViews(connection, sessions, { withSessionId: true });
  } catch (error) {
    throw asDamage(error, sessions.map(({ id }) => id).join(', '));
  }
  const named = await checkStatement(connection, request.sql);
  const names = request.made.filter((name) => named.has(name));
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
    const wanted = request.maxRows - rows;
    const values = chunk.convertRows(convert).slice(0, wanted);
    rows += values.length;
    bytes += await send({ type: 'rows', rows: values });
    if (chunk.rowCount > wanted) {
      await send({ type: 'end', cut: 'rows' });
      return;
    }
    if (bytes > request.maxBytes) {
      await send({ type: 'end', cut: 'bytes' });
      return;
    }
  }
  if (bytes > bufferBytes / 8) await checkWhole(connection, request.sql, rows);
  await send({ type: 'end', cut: null });
}

/**
 * A failure behind what DuckDB holds ready of a stream (streaming_buffer_size) looks like its end (our pin, 1.5.5); one
 * before it is thrown. As text a value takes an eighth of what it takes there, or more.
 */
const bufferBytes = 1_000_000;

/** @throws what DuckDB says of a statement that had more rows than it gave */
async function checkWhole(connection: DuckDBConnection, sql: string, rows: number): Promise<void> {
  const counted = await connection.runAndReadAll(`SELECT count(*) FROM query(${quote(sql)})`);
  if (Number(counted.getRowsJS()[0]![0]) === rows) return;
  await connection.run(`SELECT max(COLUMNS(*)) FROM query(${quote(sql)})`);
  throw new Error('its rows ended before the last');
}

/** A JSON number while that is exact, else decimal text. */
function integer(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

/**
 * Waits until the pipe has it: a fast query must not collect its result in this process, and what is still queued when
 * the process exits is lost.
 */
async function send(message: SqlMessage): Promise<number> {
  const line = `${JSON.stringify(message)}\n`;
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(line, (error) => (error ? reject(error) : resolve()));
  });
  return line.length;
}

function asKnown(thrown: unknown): InferscopeError {
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
  const { code, parts } = asKnown(error);
  await send({ type: 'error', code, parts });
  process.exit(1);
}
