import { readFileSync } from 'node:fs';
import { constants as system } from 'node:os';
import process from 'node:process';
import { talk } from './output.js';

/** Bit of SIGHUP in a signal mask. */
const hangup = 1n << BigInt(system.signals.SIGHUP - 1);

/** Signals that stop a command: Ctrl-C, a polite kill, a terminal that is closed. `nohup` has SIGHUP ignored, and a listener would undo that. */
export function stopSignals(): readonly NodeJS.Signals[] {
  let ignored = 0n;
  try {
    const mask = /^SigIgn:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    ignored = BigInt(`0x${mask ?? '0'}`);
  } catch {
    // Not Linux: nothing tells.
  }
  return (ignored & hangup) === 0n ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : ['SIGINT', 'SIGTERM'];
}

/**
 * Ends this process as the signal would have, at once (`process.exit` waits for a query that runs), but not before what
 * was to be removed at the end is removed.
 */
export function leaveAtOnce(name: NodeJS.Signals): void {
  process.emit('exit', 128 + system.signals[name]);
  process.removeAllListeners(name);
  process.kill(process.pid, name);
}

/** For as long as a command does nothing about a signal of its own. */
export function leaveUnlessHandled(): void {
  for (const name of stopSignals())
    process.on(name, () => {
      if (process.listenerCount(name) === 1) leaveAtOnce(name);
    });
}

/**
 * Calls `stop` for each of those signals while `work` runs.
 * @returns what `work` does
 */
export async function whileStopping<T>(
  stop: (name: NodeJS.Signals) => void,
  work: () => Promise<T>,
): Promise<T> {
  const names = stopSignals();
  for (const name of names) process.on(name, stop);
  try {
    return await work();
  } finally {
    for (const name of names) process.off(name, stop);
  }
}

/** Runs `work` with a signal that the first of those signals aborts, after `onFirst`; a second ends the process at once. */
export async function abortable<T>(
  work: (signal: AbortSignal) => Promise<T>,
  onFirst: () => void = () => {},
): Promise<T> {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) return leaveAtOnce(name);
    onFirst();
    controller.abort();
  };
  return whileStopping(stop, () => work(controller.signal));
}

/** The same for work that keeps what it has. */
export const interruptible = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  abortable(work, () => talk('\nstopping; keeping what is measured (Ctrl-C again to leave at once)'));
