import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { exitCodeOf } from '../model/errors.js';
import { childEntry } from '../model/installation.js';
import { startError, startProcess } from '../model/process-start.js';
import { exitText } from '../vocabulary/process-exit.js';

/** Signals that end a process after an invalid memory access or an abort. */
export const crashes: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGSEGV',
  'SIGBUS',
  'SIGABRT',
  'SIGILL',
  'SIGFPE',
]);

const work = 'checks Parquet files';

/**
 * Reads Parquet files first in a child process, so that a damaged page cannot crash this one.
 * @param entry the built parquet-child.js
 * @returns the damage; null if all files can be read, or if the process was interrupted
 * @throws E_PROCESS_START if the child could not start, so the files are unchecked
 */
export async function findParquetDamage(
  files: readonly string[],
  entry: string = childEntry('parquet-child'),
): Promise<string | null> {
  if (files.length === 0) return null;
  const child = await startProcess(work, entry, (mark) =>
    spawn(process.execPath, [entry], { env: { ...process.env, ...mark }, stdio: ['pipe', 'ignore', 'pipe'] }),
  );
  const exit = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  // A child that exits early closes the pipe; its exit is reported below.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(files));
  const stderrText = await text(child.stderr);
  const [code, signal] = await exit;
  if (signal !== null)
    return crashes.has(signal) ? `The process that read its tables ${exitText(signal, code)}.` : null;
  if (code === 0) return null;
  if (code !== exitCodeOf.E_SESSION_ARCHIVE)
    throw startError(work, entry, { exitCode: code, stderr: stderrText });
  return stderrText.trim().split('\n')[0] ?? '';
}
