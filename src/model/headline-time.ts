import type { StageWaterfall } from './documents/explain.js';
import type { TracePhase } from './documents/trace.js';
import { isExposedBar, isKernelBar } from './bars.js';
import { type Figure, figure } from './figure.js';

/** For a stage or phase with known times with a profiler, without one, or both. */
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
  const withoutProfiler = bars.filter(({ id }) => id !== ofProfiler);
  return {
    bars: withoutProfiler,
    profiler: bars.find(({ id }) => id === ofProfiler) ?? null,
    ms: withoutProfiler.reduce((sum, { ms }) => sum + ms, 0),
  };
}

/** The time that leads of a phase of a timeline, ms, and whether it was taken under the profiler. */
export function phaseTime({
  clean_ms,
  wall,
}: {
  clean_ms: Figure;
  wall: Pick<TracePhase['wall'], 'mean_ns'>;
}): {
  ms: number;
  profiled: boolean;
} {
  const measured_ms = figure(wall.mean_ns / 1e6, 'ms', 'windows of the timeline');
  const time = headlineTime({ clean_ms, measured_ms });
  return { ms: time.value ?? 0, profiled: time === measured_ms };
}

/**
 * What of a time a device is idle, in the time's unit and as a share. It works as long with a profiler as without, so all
 * that a profiler adds is idle time.
 */
export function idleIn(time: number, busy: number): { idle: number; share: number } {
  const idle = Math.max(0, time - busy);
  return { idle, share: time > 0 ? idle / time : 0 };
}

/** Kernels and copies of a mean instance, ms: what neither the host nor the profiler reaches. */
export const busyMs = ({ bars }: Pick<StageWaterfall, 'bars'>): number =>
  bars.reduce((sum, { id, ms }) => sum + (isKernelBar(id) || isExposedBar(id) ? ms : 0), 0);
