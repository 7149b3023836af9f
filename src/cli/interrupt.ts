import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { constants as system } from 'node:os';
import process from 'node:process';
import { notify } from './output.js';

/** Bit of SIGHUP in a signal mask. */
const hangup = 1n << BigInt(system.signals.SIGHUP - 1);

/** Signals that stop a command: Ctrl-C, kill, a closed terminal. `nohup` ignores SIGHUP, and a listener would undo that. */
function stopSignals(): readonly NodeJS.Signals[] {
  let ignored = 0n;
  try {
    const mask = /^SigIgn:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    ignored = BigInt(`0x${mask ?? '0'}`);
  } catch {
    // Not Linux: the signal mask is unknown.
  }
  return (ignored & hangup) === 0n ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : ['SIGINT', 'SIGTERM'];
}

/**
 * Exits as the signal would have, at once (`process.exit` waits for a running query), after the exit handlers removed
 * temporary files.
 */
export function exitAtOnce(name: NodeJS.Signals): void {
  process.emit('exit', 128 + system.signals[name]);
  process.removeAllListeners(name);
  process.kill(process.pid, name);
}

/** Default handling while a command has no signal handler of its own. */
export function exitOnUnhandledSignals(): void {
  for (const name of stopSignals())
    process.on(name, () => {
      if (process.listenerCount(name) === 1) exitAtOnce(name);
    });
}

/** Calls `stop` for each of these signals while `work` runs. @returns the result of `work` */
export async function withStopHandler<T>(
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

/** Runs `work` with an AbortSignal that the first of these signals aborts, after `onFirst`; a second exits at once. */
export async function abortable<T>(
  work: (signal: AbortSignal) => Promise<T>,
  onFirst: () => void = () => {},
): Promise<T> {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) return exitAtOnce(name);
    onFirst();
    controller.abort();
  };
  return withStopHandler(stop, () => work(controller.signal));
}

/** The same for work that saves partial results. */
export const interruptible = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  abortable(work, () => notify('\nstopping; saving what was measured (Ctrl-C again to exit at once)'));

/** Ctrl-C is the normal way to stop a server, not a failure. */
export async function waitForStop(): Promise<void> {
  const stop = new AbortController();
  await withStopHandler(
    () => stop.abort(),
    () => once(stop.signal, 'abort'),
  );
}

/** What Ctrl-C stops in `run`, depending on the current step. */
export interface RunInterrupts {
  /** First: asks the program to exit. The abort reason is the name of the signal. */
  signal: AbortSignal;
  /** Second: kills the program and its children. */
  kill: AbortSignal;
  /** Captures are saved without being read. */
  unread: AbortSignal;
  /** Sets the current step; before the first, there is nothing to save. */
  enter(phase: 'program' | 'reading'): void;
}

/**
 * Runs `work` around a program. Ctrl-C before the program starts: exits at once. While it runs: the first waits for
 * its exit, the second kills it. After its exit: the first continues to read captures, the next saves them unread. One
 * more exits at once and saves nothing.
 */
export async function interruptibleRun<T>(work: (interrupts: RunInterrupts) => Promise<T>): Promise<T> {
  const polite = new AbortController();
  const hard = new AbortController();
  const unread = new AbortController();
  let phase: 'starting' | 'program' | 'reading' = 'starting';
  const inProgram = (name: NodeJS.Signals) => {
    if (polite.signal.aborted) {
      notify('\nkilling the program; saving what was recorded');
      hard.abort(name);
    } else {
      notify('\nwaiting for the program to exit (Ctrl-C again to kill it)');
      polite.abort(name);
    }
  };
  const inReading = (name: NodeJS.Signals) => {
    if (polite.signal.aborted) {
      notify('\nsaving the captures without reading them (Ctrl-C again to exit at once and save nothing)');
      unread.abort(name);
    } else {
      notify('\nthe program has exited; reading its captures (Ctrl-C again to save them unread)');
      polite.abort(name);
    }
  };
  return withStopHandler(
    (name) => {
      if (phase === 'starting' || unread.signal.aborted) exitAtOnce(name);
      else if (phase === 'reading') inReading(name);
      else if (hard.signal.aborted) exitAtOnce(name);
      else inProgram(name);
    },
    () =>
      work({
        signal: polite.signal,
        kill: hard.signal,
        unread: unread.signal,
        enter: (next) => {
          phase = next;
        },
      }),
  );
}

/** Runs `work` around programs: the first Ctrl-C waits for their exit, the second kills them, the third exits inferscope. */
export async function interruptibleTwice<T>(
  work: (signal: AbortSignal, kill: AbortSignal) => Promise<T>,
): Promise<T> {
  return interruptibleRun(({ signal, kill, enter }) => {
    enter('program');
    return work(signal, kill);
  });
}
