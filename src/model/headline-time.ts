import type { StageWaterfall } from './documents/explain.js';
import type { TracePhase } from './documents/trace.js';
import { isExposedBar, isKernelBar } from './bars.js';
import { type Figure, figure } from './figure.js';

/** A stage or phase with its time with a profiler, without one, or both. */
type Timed = Pick<StageWaterfall, 'clean_ms' | 'measured_ms'>;

/**
 * The headline time of all surfaces: that of the execution without a profiler if there is one, else the measured time, which is under the
 * profiler for `source` trace and operators.
 */
export const headlineTime = ({ clean_ms, measured_ms }: Timed): Figure =>
  clean_ms.value === null ? measured_ms : clean_ms;

/** Whether the headline time was measured under a profiler. */
export const isProfiled = ({ source, clean_ms }: Pick<StageWaterfall, 'source' | 'clean_ms'>): boolean =>
  (source === 'trace' || source === 'operators') && clean_ms.value === null;

/** Fewer instances have no fastest tenth. */
const minInstances = 5;

/** Median and 10th percentile of the instances behind the headline time, ms; null if they are not known. */
export function headlineQuantiles(
  stage: Timed & Pick<StageWaterfall, 'instances' | 'median_ms' | 'p10_ms'>,
): { median: number | null; p10: number | null } {
  const { clean_ms: clean, measured_ms: measured, instances, median_ms, p10_ms } = stage;
  const [n, median, p10] =
    clean.value === null || clean.value === measured.value
      ? [instances, median_ms, p10_ms]
      : [clean.n ?? 0, clean.median ?? null, clean.p10 ?? null];
  return n < minInstances ? { median: null, p10: null } : { median, p10 };
}

const profilerBar = 'profiler_overhead';

/** The bars that sum to the headline time, and the profiler overhead after it; `share` is of that sum. */
export function explainedBars<B extends { id: string; ms: number }>(
  bars: readonly B[],
): { bars: B[]; profiler: B | null; ms: number } {
  const withoutProfiler = bars.filter(({ id }) => id !== profilerBar);
  return {
    bars: withoutProfiler,
    profiler: bars.find(({ id }) => id === profilerBar) ?? null,
    ms: withoutProfiler.reduce((sum, { ms }) => sum + ms, 0),
  };
}

/** The headline time of a phase of a timeline, ms, and whether it was measured under the profiler. */
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
 * Idle time of a device within a time, in the same unit and as a share. A profiler makes no work of the device longer, so all
 * its overhead is idle time.
 */
export function idleIn(time: number, busy: number): { idle: number; share: number } {
  const idle = Math.max(0, time - busy);
  return { idle, share: time > 0 ? idle / time : 0 };
}

/** Kernels and copies per mean instance, ms, which neither the host nor the profiler affects. */
export const busyMs = ({ bars }: Pick<StageWaterfall, 'bars'>): number =>
  bars.reduce((sum, { id, ms }) => sum + (isKernelBar(id) || isExposedBar(id) ? ms : 0), 0);

/** Relative difference by which two runs of a program differ by chance. */
const runToRun = 0.02;

/** Whether the clean execution took longer than the profiled one by more than chance: the machine was slower. Both in one unit. */
export const isSlower = (clean: number | null, profiled: number): boolean =>
  clean !== null && clean > (1 + runToRun) * profiled;

/** Factors on the busy and idle time of a device. */
export interface Slowdown {
  busy: number;
  idle: number;
}

/**
 * Factors from the profiled to the clean execution if that was slower: the larger of busy and idle time takes the difference.
 * @param clean in the unit of busy and idle time; null without such an execution
 */
export function slowdown({ busy, idle }: { busy: number; idle: number }, clean: number | null): Slowdown {
  const profiled = busy + idle;
  if (clean === null || !isSlower(clean, profiled)) return { busy: 1, idle: 1 };
  const extra = clean - profiled;
  return busy >= idle ? { busy: 1 + extra / busy, idle: 1 } : { busy: 1, idle: 1 + extra / idle };
}
