import type { BenchPoint } from '../../model/bench.js';
import { formatDuration } from '../../vocabulary/format.js';

interface Eta {
  /** A launch starts; the time until its first iteration is startup. */
  startLaunch(execution: string, launch: number): void;
  addIteration(execution: string, launch: number, point: string, e2eMs: number): void;
  /** A finished point takes no more time in this launch. */
  closePoint(execution: string, launch: number, point: string): void;
  endLaunch(execution: string, launch: number): void;
  /** Seconds left; null before anything is known. */
  secondsLeft(): number | null;
}

/** Usual number of warm-ups per point; the actual number is not known in advance. */
const usualWarmups = 2.5;

/**
 * Remaining time of a benchmark: a point takes as long as last time; a new point is estimated by size from the measured
 * ones (a generated token costs about a hundred prompt tokens on one sequence).
 */
export function startEta(
  variants: readonly { execution_id: string; points: readonly BenchPoint[] }[],
  { launches, repeats }: { launches: number; repeats: number },
  nowMs: () => number = () => performance.now(),
): Eta {
  const lastMs = new Map<string, number>();
  const iterations = new Map<string, number>();
  const closed = new Set<string>();
  const startups: number[] = [];
  let current: { execution: string; launch: number; startMs: number; waiting: boolean } | null = null;
  const size = ({ batch_size, input_len, output_len }: BenchPoint) =>
    output_len + (batch_size * input_len) / 100;
  const sizes = new Map(variants.flatMap(({ points }) => points.map((point) => [point.point, size(point)])));

  function perSize(): number | null {
    const rates = [...lastMs].map(([key, ms]) => ms / sizes.get(key.slice(key.indexOf('/') + 1))!);
    return rates.length === 0 ? null : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  }

  return {
    startLaunch(execution, launch) {
      current = { execution, launch, startMs: nowMs(), waiting: true };
    },
    addIteration(execution, launch, point, e2eMs) {
      if (current?.waiting) {
        startups.push(Math.max(0, nowMs() - current.startMs - e2eMs));
        current.waiting = false;
      }
      lastMs.set(`${execution}/${point}`, e2eMs);
      const key = `${execution}/${launch}/${point}`;
      iterations.set(key, (iterations.get(key) ?? 0) + 1);
    },
    closePoint: (execution, launch, point) => void closed.add(`${execution}/${launch}/${point}`),
    endLaunch: (execution, launch) => void closed.add(`${execution}/${launch}`),
    secondsLeft() {
      const rate = perSize();
      if (rate === null) return null;
      const startup = startups.reduce((sum, ms) => sum + ms, 0) / Math.max(1, startups.length);
      let ms = 0;
      for (const { execution_id: execution, points } of variants)
        for (let launch = 0; launch < launches; launch++) {
          if (closed.has(`${execution}/${launch}`)) continue;
          if (current?.execution !== execution || current.launch !== launch) ms += startup;
          for (const point of points) {
            const key = `${execution}/${launch}/${point.point}`;
            if (closed.has(key)) continue;
            const remaining = Math.max(1, repeats + usualWarmups - (iterations.get(key) ?? 0));
            ms += remaining * (lastMs.get(`${execution}/${point.point}`) ?? rate * size(point));
          }
        }
      return ms / 1000;
    },
  };
}

/**
 * Remaining time of a count of parts of similar duration. Startup before the first part is excluded; a count that restarts
 * (another round, another process) is estimated anew.
 * @returns seconds left after a part started with `done` before it; null before the first has finished
 */
export function startCountEta(
  nowMs: () => number = () => performance.now(),
): (done: number, total: number) => number | null {
  let start: { ms: number; done: number; total: number } | null = null;
  return (done, total) => {
    if (start === null || done < start.done || total !== start.total) start = { ms: nowMs(), done, total };
    const doneSinceStart = done - start.done;
    return doneSinceStart === 0 ? null : ((nowMs() - start.ms) / doneSinceStart / 1000) * (total - done);
  };
}

/** `about 40 s left · `, empty when unknown; first on a line, because a narrow terminal cuts off its end. */
export const leftWords = (seconds: number | null): string =>
  seconds === null ? '' : `about ${formatDuration(seconds)} left · `;
