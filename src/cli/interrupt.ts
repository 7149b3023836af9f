import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import { talk } from './output.js';

/**
 * Runs `work` with a signal that Ctrl-C (or a polite kill, or a terminal that is closed) aborts, so that it can keep
 * what it has. A second Ctrl-C ends the process at once.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(exitCodeOf.E_INTERRUPTED);
    talk('\nstopping; keeping what is measured (Ctrl-C again to leave at once)');
    controller.abort();
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, stop);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of names) process.off(name, stop);
  }
}
