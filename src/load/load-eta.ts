/** What bounds a load: requests (warm-up included), seconds, or both; Infinity for no bound. */
export interface LoadSize {
  requests: number;
  seconds: number;
  /** Users of a closed loop; null for an open load (requests come when they are due). */
  users: number | null;
}

interface LoadEta {
  begun(load: LoadSize): void;
  progressed(done: number): void;
  /** Seconds left of the load that runs and of those after it; null before anything is known. */
  leftS(after: readonly LoadSize[]): number | null;
}

/**
 * Time left of a load test. A user of a closed loop takes as long for a request as in the load that runs, else in the one
 * before; more users may each wait longer than that. An open load ends when its last request is due.
 */
export function startLoadEta(nowMs: () => number = () => performance.now()): LoadEta {
  let current: LoadSize | null = null;
  let beganMs = 0;
  let done = 0;
  /** Seconds per request of one user. */
  let requestS = Number.POSITIVE_INFINITY;

  const needed = ({ users }: LoadSize, requests: number) =>
    users === null || requests <= 0 ? 0 : (requests / Math.min(users, requests)) * requestS;
  const bounded = (load: LoadSize, requests: number, spentS: number) => {
    const bySeconds = Math.max(0, load.seconds - spentS);
    return load.users === null ? bySeconds : Math.min(bySeconds, needed(load, requests));
  };

  return {
    begun(load) {
      current = load;
      beganMs = nowMs();
      done = 0;
    },
    progressed(count) {
      done = count;
      if (current?.users && done > 0)
        requestS = ((nowMs() - beganMs) / 1000 / done) * Math.min(current.users, current.requests);
    },
    leftS(after) {
      const rest =
        current === null ? 0 : bounded(current, current.requests - done, (nowMs() - beganMs) / 1000);
      const sum = after.reduce((total, load) => total + bounded(load, load.requests, 0), rest);
      return Number.isFinite(sum) ? sum : null;
    },
  };
}
