import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import process from 'node:process';
import { launchedRank } from './launched-rank.js';

/** A process with its command line and parent; null if the system does not list it. */
interface ProcessEntry {
  words: string[];
  parent: number;
}

function readProcess(pid: number): ProcessEntry | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Field 4; the command in field 2 may contain spaces and brackets.
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return { words: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1), parent };
  } catch {
    return null;
  }
}

/**
 * The process that started the ranks of this host: the nearest parent without a rank of its own. A shell between it and a rank has the
 * rank's environment.
 * @returns null if the system lists no environments of processes
 */
export function launcherProcess(): number | null {
  try {
    for (let pid = process.ppid; pid > 0; pid = readProcess(pid)?.parent ?? 0) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      const entries = environment.map((entry) => [
        entry.slice(0, entry.indexOf('=')),
        entry.slice(entry.indexOf('=') + 1),
      ]);
      if (launchedRank(Object.fromEntries(entries)) === null) return pid;
    }
  } catch {
    // The launcher may belong to another user.
  }
  return null;
}

/**
 * The words typed before this command to start the ranks of a job, such as `torchrun --nproc-per-node 8 --no-python`, from the command line
 * of a parent process. srun's command line is on the host where it was typed, so its ranks know only their number.
 * @param commandWords words of this command, without the program that runs them
 * @returns nothing for a process without a launcher
 */
export function launcherWords(
  commandWords: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
  read: (pid: number) => ProcessEntry | null = readProcess,
): string[] {
  const launched = launchedRank(env);
  if (launched === null) return [];
  let launcher = launched.command ?? [];
  for (let ancestor = read(process.ppid); ancestor !== null; ancestor = read(ancestor.parent)) {
    const before = wordsBefore(ancestor.words, commandWords);
    if (before.length > 0) launcher = before;
  }
  return launcher;
}

/** The words of a command line before the program that takes these last words, without interpreters of scripts. */
function wordsBefore(words: readonly string[], commandWords: readonly string[]): string[] {
  const start = words.length - commandWords.length;
  if (start < 2 || !commandWords.every((word, i) => words[start + i] === word)) return [];
  const withoutNode = basename(words[start - 2]!) === 'node' ? start - 2 : start - 1;
  const before = words.slice(0, withoutNode);
  const [first = '', second = ''] = before;
  const script = /^python[\d.]*$/.test(basename(first)) && second.startsWith('/') ? before.slice(1) : before;
  return script.map((word, i) => (i === 0 ? basename(word) : word));
}
