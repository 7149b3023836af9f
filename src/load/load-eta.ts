/** Limits of a load: requests (including warm-up), seconds, or both; Infinity for no limit. */
export interface LoadSize {
  requests: number;
  seconds: number;
  /** Users of a closed loop; null for an open load (requests are sent when due). */
  users: number | null;
}

interface LoadEta {
  startLoad(load: LoadSize): void;
  setAnswered(count: number): void;
  /** Remaining seconds of the current load and those after it; null before any progress. */
  remainingS(after: readonly LoadSize[]): number | null;
}

/**
 * Remaining time of a load test. A request is expected to take as long as those of the current load, else of the
 * previous one, although it may take longer with more users. An open load ends when its last request is due.
 */
export function startLoadEta(nowMs: () => number = () => performance.now()): LoadEta {
  let current: LoadSize | null = null;
  let startMs = 0;
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
    startLoad(load) {
      current = load;
      startMs = nowMs();
      done = 0;
    },
    setAnswered(count) {
      done = count;
      if (current?.users && done > 0)
        requestS = ((nowMs() - startMs) / 1000 / done) * Math.min(current.users, current.requests);
    },
    remainingS(after) {
      const currentS =
        current === null ? 0 : bounded(current, current.requests - done, (nowMs() - startMs) / 1000);
      const sum = after.reduce((total, load) => total + bounded(load, load.requests, 0), currentS);
      return Number.isFinite(sum) ? sum : null;
    },
  };
}
