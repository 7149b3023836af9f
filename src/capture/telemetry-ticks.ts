import { monotonicNs } from '../model/clock.js';

interface Ticks {
  stop(): void;
  /** Due times missed because the event loop was busy. */
  missedCount(): number;
}

/**
 * Calls `take` once per period until stop(). Uses absolute due times, so that delays do not accumulate; each missed due
 * time is counted. The timer does not keep the process alive.
 * @param fromNs the first due time is one period after it
 */
export function startTicks(periodNs: number, fromNs: number, take: () => void): Ticks {
  let dueNs = fromNs + periodNs;
  let missed = 0;
  let timer: NodeJS.Timeout;
  function schedule(): void {
    timer = setTimeout(
      () => {
        take();
        const latePeriods = Math.max(0, Math.floor((monotonicNs() - dueNs) / periodNs));
        missed += latePeriods;
        dueNs += (latePeriods + 1) * periodNs;
        schedule();
      },
      Math.max(0, (dueNs - monotonicNs()) / 1e6),
    );
    timer.unref();
  }
  schedule();
  return { stop: () => clearTimeout(timer), missedCount: () => missed };
}
