import { leaveAtOnce, whileStopping } from './interrupt.js';
import { talk } from './output.js';

/** What Ctrl-C stops in `run`, which depends on what there is to be waited for. */
export interface RunInterrupts {
  /** First: the program is asked to end. Its reason is the name of the signal that came. */
  signal: AbortSignal;
  /** Second: the program and its children are killed. */
  kill: AbortSignal;
  /** Captures are kept as they are, unread. */
  unread: AbortSignal;
  /** Tells what is waited for from now on; before, there is nothing to keep. */
  enter(phase: 'program' | 'reading'): void;
}

/**
 * Runs `work` around a program. Until the program runs Ctrl-C leaves at once. While it runs the first lets it end, the
 * second kills it. When it has ended, its captures are read on at the first, kept unread at the next. One more leaves
 * at once, with nothing kept.
 */
export async function interruptibleRun<T>(work: (interrupts: RunInterrupts) => Promise<T>): Promise<T> {
  const polite = new AbortController();
  const hard = new AbortController();
  const unread = new AbortController();
  let phase: 'starting' | 'program' | 'reading' = 'starting';
  const inProgram = (name: NodeJS.Signals) => {
    if (polite.signal.aborted) {
      talk('\nkilling the program; keeping what is there');
      hard.abort(name);
    } else {
      talk('\nwaiting for the program to end (Ctrl-C again to kill it)');
      polite.abort(name);
    }
  };
  const inReading = (name: NodeJS.Signals) => {
    if (polite.signal.aborted) {
      talk('\nkeeping the captures as they are, unread (Ctrl-C again to leave at once and keep nothing)');
      unread.abort(name);
    } else {
      talk('\nthe program has ended; reading what it left, to keep it (Ctrl-C again to keep it unread)');
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

/** Runs `work` around programs: the first Ctrl-C lets them end, the second kills them, the third ends inferscope. */
export async function interruptibleTwice<T>(
  work: (signal: AbortSignal, kill: AbortSignal) => Promise<T>,
): Promise<T> {
  return interruptibleRun(({ signal, kill, enter }) => {
    enter('program');
    return work(signal, kill);
  });
}
