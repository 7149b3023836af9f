import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import process from 'node:process';
import { launchedRank } from './launched-rank.js';

/** A process and its parent, as the system lists them; null where it does not. */
interface Listed {
  words: string[];
  parent: number;
}

function listed(pid: number): Listed | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Field 4; the command in field 2 may hold spaces and brackets.
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return { words: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1), parent };
  } catch {
    return null;
  }
}

/**
 * What was typed before this command by whoever started the ranks of a job: `torchrun --nproc-per-node 8 --no-python`. It is in the command
 * line of a process above this one; srun's is on the host where it was typed, so that its ranks know only how many they are.
 * @param own words of this command, without the program that runs them
 * @returns nothing for a process that no launcher started
 */
export function launcherWords(
  own: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
  read: (pid: number) => Listed | null = listed,
): string[] {
  const launched = launchedRank(env);
  if (launched === null) return [];
  let typed = launched.typed ?? [];
  for (let above = read(process.ppid); above !== null; above = read(above.parent)) {
    const before = wordsBefore(above.words, own);
    if (before.length > 0) typed = before;
  }
  return typed;
}

/** What a command line has before the program that takes these last words; interpreters of scripts are left out. */
function wordsBefore(words: readonly string[], own: readonly string[]): string[] {
  const at = words.length - own.length;
  if (at < 2 || !own.every((word, i) => words[at + i] === word)) return [];
  const withoutNode = basename(words[at - 2]!) === 'node' ? at - 2 : at - 1;
  const before = words.slice(0, withoutNode);
  const [first = '', second = ''] = before;
  const script = /^python[\d.]*$/.test(basename(first)) && second.startsWith('/') ? before.slice(1) : before;
  return script.map((word, i) => (i === 0 ? basename(word) : word));
}
