import process from 'node:process';
import { text } from 'node:stream/consumers';
import { exitCodeOf, messageOf } from '../model/errors.js';
import { openDatabase, quote } from './database.js';

/**
 * Reads every value of Parquet files: stdin is a JSON array of paths. DuckDB reads pages without checksums, and a damaged page may crash
 * this process. Other errors of a file are printed on stderr with the exit code of a bad input file; any other exit code is an internal
 * error.
 */
const files = JSON.parse(await text(process.stdin)) as string[];
const { connection, close } = await openDatabase();
try {
  for (const file of files)
    await connection.run(`SELECT max(hash(file)) FROM read_parquet(${quote(file)}) AS file`);
} catch (error) {
  process.stderr.write(messageOf(error));
  process.exitCode = exitCodeOf.E_SESSION_ARCHIVE;
}
await close();
