import { leaveAtOnce, whileStopping } from './interrupt.js';
import { talk } from './output.js';

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
      talk('\nkilling the program; saving what was recorded');
      hard.abort(name);
    } else {
      talk('\nwaiting for the program to exit (Ctrl-C again to kill it)');
      polite.abort(name);
    }
  };
  const inReading = (name: NodeJS.Signals) => {
    if (polite.signal.aborted) {
      talk('\nsaving the captures without reading them (Ctrl-C again to exit at once and save nothing)');
      unread.abort(name);
    } else {
      talk('\nthe program has exited; reading its captures (Ctrl-C again to save them unread)');
      polite.abort(name);
    }
  };
  return whileStopping(
    (name) => {
      if (phase === 'starting' || unread.signal.aborted) leaveAtOnce(name);
      else if (phase === 'reading') inReading(name);
      else if (hard.signal.aborted) leaveAtOnce(name);
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
