import { monotonicNs } from '../model/clock.js';

export interface Ticks {
  stop(): void;
  /** Due times that went by because the event loop was busy. */
  missed(): number;
}

/**
 * Calls `take` once a period until stop(). Aimed at absolute due times, so that late samples do not add up; each due
 * time that went by is counted. The timer does not keep the process alive.
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
        const late = Math.max(0, Math.floor((monotonicNs() - dueNs) / periodNs));
        missed += late;
        dueNs += (late + 1) * periodNs;
        schedule();
      },
      Math.max(0, (dueNs - monotonicNs()) / 1e6),
    );
    timer.unref();
  }
  schedule();
  return { stop: () => clearTimeout(timer), missed: () => missed };
}
