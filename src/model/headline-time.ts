import type { StageWaterfall } from './documents/explain.js';
import type { Figure } from './figure.js';

/** Of a stage or phase whose times with and without a profiler are known, or one of them. */
type Timed = Pick<StageWaterfall, 'clean_ms' | 'measured_ms'>;

/**
 * The time that every surface leads with: that of the execution without a profiler where there is one, else W.
 * `source` trace and operators have their W under the profiler; the others have no profiler in it.
 */
export const headlineTime = ({ clean_ms, measured_ms }: Timed): Figure =>
  clean_ms.value === null ? measured_ms : clean_ms;

/** Whether the time that leads was taken under a profiler. */
export const isProfiled = ({ source, clean_ms }: Pick<StageWaterfall, 'source' | 'clean_ms'>): boolean =>
  (source === 'trace' || source === 'operators') && clean_ms.value === null;

const ofProfiler = 'profiler_overhead';

/** The bars that share the headline time, and what the profiler added after it; `share` is of the sum of the former. */
export function explainedBars<B extends { id: string; ms: number }>(
  bars: readonly B[],
): { bars: B[]; profiler: B | null; ms: number } {
  const own = bars.filter(({ id }) => id !== ofProfiler);
  return {
    bars: own,
    profiler: bars.find(({ id }) => id === ofProfiler) ?? null,
    ms: own.reduce((sum, { ms }) => sum + ms, 0),
  };
}
