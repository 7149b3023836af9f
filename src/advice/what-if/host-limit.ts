import { type Effect, type StageState, sumOf } from './stage-state.js';

/**
 * Host and device work concurrently: a stage takes as long as the slower one. Longer kernels first fill the idle time between
 * launches; shorter kernels shorten the stage only down to the host time, and the rest becomes idle time.
 * @param bars after the change of device work, with unchanged idle bars
 */
export function withHostLimit(before: StageState, bars: Map<string, number>): Effect['state'] {
  const delta = sumOf(bars) - sumOf(before.bars);
  const idle = [...bars].filter(([id, ms]) => before.idleBars.has(id) && ms > 0);
  const idleMs = idle.reduce((sum, [, ms]) => sum + ms, 0);
  if (delta > 0) {
    const absorbed = Math.min(delta, before.launchIdleMs, idleMs);
    if (absorbed > 0) for (const [id, ms] of idle) bars.set(id, ms * (1 - absorbed / idleMs));
    return { ...before, bars, launchIdleMs: before.launchIdleMs - absorbed };
  }
  // If the stage is not host-bound, the host time is not known to be close: nothing is added.
  const minMs = Math.min(before.hostMs ?? 0, sumOf(before.bars));
  const wait = Math.max(0, minMs - sumOf(bars));
  if (wait === 0) return { ...before, bars };
  if (idleMs > 0) for (const [id, ms] of idle) bars.set(id, ms * (1 + wait / idleMs));
  else bars.set('launch_overhead', wait);
  const idleBars = idleMs > 0 ? before.idleBars : new Set([...before.idleBars, 'launch_overhead']);
  return { ...before, bars, idleBars, launchIdleMs: before.launchIdleMs + wait };
}
