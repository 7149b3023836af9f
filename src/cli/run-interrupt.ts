import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import { talk } from './output.js';

/**
 * Runs `work` around a program: the first Ctrl-C lets the program end, the second kills it, the third ends inferscope.
 * `signal`'s reason is the name of the signal that came.
 */
export async function interruptibleTwice<T>(
  work: (signal: AbortSignal, kill: AbortSignal) => Promise<T>,
): Promise<T> {
  const polite = new AbortController();
  const hard = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    if (hard.signal.aborted) process.exit(exitCodeOf.E_INTERRUPTED);
    if (polite.signal.aborted) {
      talk('\nkilling the program; keeping what is there');
      hard.abort(name);
      return;
    }
    talk('\nwaiting for the program to end (Ctrl-C again to kill it)');
    polite.abort(name);
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, stop);
  try {
    return await work(polite.signal, hard.signal);
  } finally {
    for (const name of names) process.off(name, stop);
  }
}
