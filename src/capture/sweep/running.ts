import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { isAlive } from '../../model/alive.js';

/** Words of a live process's command line (Linux); null if not readable. */
function wordsOf(pid: number): string[] | null {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return null;
  }
}

/** Whether a live process has this word on its command line; a process id alone may have been reused. */
export function hasWord(pid: number, word: string): boolean {
  if (!isAlive(pid)) return false;
  return wordsOf(pid)?.includes(word) ?? process.platform !== 'linux';
}

/**
 * The process with a command line that ends with these words: the run of a sweep that was killed before it could record the
 * process id. Null without /proc.
 */
export function findProcess(words: readonly string[]): number | null {
  const end = words.join('\0');
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return null;
  }
  for (const name of names) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    if (wordsOf(Number(name))?.join('\0').endsWith(`\0${end}`)) return Number(name);
  }
  return null;
}
