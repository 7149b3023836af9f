import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { endWithUs } from '../model/end-with-us.js';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { childEntry, packageRoot } from '../model/installation.js';

/** How a process ends that read memory it does not have, or gave up over it. */
export const crashes: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGSEGV',
  'SIGBUS',
  'SIGABRT',
  'SIGILL',
  'SIGFPE',
]);

/**
 * Reads Parquet files in a process of its own first, so that a damaged page cannot end this one.
 * @param entry the built parquet-child.js
 * @returns what is wrong with them; null when all can be read, or when the process was interrupted
 * @throws E_INTERNAL where that process could not start: nothing is known about the files then
 */
export async function parquetDamage(
  files: readonly string[],
  entry: string = childEntry('parquet-child'),
): Promise<string | null> {
  if (files.length === 0) return null;
  const child = spawn(process.execPath, [entry], { stdio: ['pipe', 'ignore', 'pipe'] });
  endWithUs(child);
  const exited = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  // A child that dies early closes the pipe; its end is reported below.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(files));
  const talk = await text(child.stderr);
  const [code, signal] = await exited;
  if (signal !== null)
    return crashes.has(signal) ? `The process that read its tables ended by ${signal}.` : null;
  if (code === 0) return null;
  if (code !== exitCodeOf.E_SESSION_ARCHIVE) throw notStarted(entry, code, talk);
  return talk.trim().split('\n')[0] ?? '';
}

function notStarted(entry: string, code: number | null, talk: string): InferscopeError {
  return new InferscopeError('E_INTERNAL', {
    what: `the process that checks Parquet files could not start: ${entry} (exit code ${code})`,
    why: talk.trim() || 'It wrote nothing to stderr.',
    fix: `Install inferscope again; in a checkout, type npm run build in ${packageRoot()}`,
  });
}
