import process from 'node:process';
import { exitCodeOf } from '../model/errors.js';
import { talk } from './output.js';

/**
 * Runs `work` with a signal that Ctrl-C (or a polite kill) aborts, so that it can keep what it has. A second Ctrl-C
 * ends the process at once.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(exitCodeOf.E_INTERRUPTED);
    talk('\nstopping; keeping what is measured (Ctrl-C again to leave at once)');
    controller.abort();
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}
