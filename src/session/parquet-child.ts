import process from 'node:process';
import { text } from 'node:stream/consumers';
import { messageOf } from '../model/errors.js';
import { openDatabase, quote } from './database.js';

/**
 * Reads every value of Parquet files: stdin is a JSON array of paths. DuckDB reads pages without checksums, and a damaged
 * one may end this process. What else is wrong with a file goes to stderr, with exit code 1.
 */
try {
  const files = JSON.parse(await text(process.stdin)) as string[];
  const { connection, close } = await openDatabase();
  for (const file of files)
    await connection.run(`SELECT max(hash(file)) FROM read_parquet(${quote(file)}) AS file`);
  await close();
} catch (error) {
  process.stderr.write(messageOf(error));
  process.exitCode = 1;
}
