import { betweenCalls, isBarOf, isHostBar, isRuntimeBar } from '../model/bars.js';

interface Part {
  id: string;
  ms: number;
}

/** A runtime's own profiler adds to each operator's start, then to its calls; sampling and the loop lie outside of it. */
const takenFrom: readonly ((id: string) => boolean)[] = [
  (id) => id === 'host.runtime_dispatch',
  (id) => id === 'host.runtime_call',
  (id) => isHostBar(id) && !isRuntimeBar(id) && !betweenCalls.includes(id),
  (id) => isBarOf(id, 'launch_overhead'),
  (id) => isBarOf(id, 'launch_latency', 'synchronization'),
];

/**
 * Removes profiler overhead from bars: host first, then launches, then waits for them. The remainder, or extra time of the
 * clean execution, goes to `unattributed`: the bars always sum to the clean time.
 * @param overheadMs W minus the clean time; 0 without one
 */
export function withoutProfiler(parts: readonly Part[], overheadMs: number): Part[] {
  if (overheadMs === 0) return [...parts];
  let left = overheadMs;
  const taken = new Map<string, number>();
  for (const group of takenFrom) {
    const own = parts.filter(({ id, ms }) => group(id) && ms > 0);
    const sum = own.reduce((total, { ms }) => total + ms, 0);
    const share = sum > 0 ? Math.min(1, Math.max(0, left) / sum) : 0;
    for (const { id, ms } of own) taken.set(id, ms * share);
    left -= sum * share;
  }
  const rest = parts.map(({ id, ms }) => ({
    id,
    ms: ms - (id === 'unattributed' ? left : (taken.get(id) ?? 0)),
  }));
  return [...rest, { id: 'profiler_overhead', ms: overheadMs }];
}
