import { betweenCalls, isBarOf, isHostBar, isPageableCopyBar, isRuntimeBar } from '../model/bars.js';

interface Part {
  id: string;
  ms: number;
}

/**
 * Bars that a runtime's profiler makes longer, in the order in which its overhead is subtracted: start of operators
 * first, then calls. Sampling and loop are outside of its calls.
 */
const lengthenedBars: readonly ((id: string) => boolean)[] = [
  (id) => id === 'host.runtime_dispatch',
  (id) => id === 'host.runtime_call',
  (id) => isHostBar(id) && !isRuntimeBar(id) && !betweenCalls.includes(id),
  (id) => isBarOf(id, 'launch_overhead'),
  (id) => isBarOf(id, 'launch_latency', 'synchronization'),
  // The host moves pageable memory through a buffer of the driver; kernels and other copies take as long with a profiler as without.
  isPageableCopyBar,
];

/**
 * Subtracts profiler overhead from bars: host first, then launches, then waits for them, then copies of pageable
 * memory. The remainder, or extra time of the clean execution, goes to `unattributed`, if `parts` has it: then all bars
 * except the added `profiler_overhead` sum to the clean time.
 * @param overheadMs the profiled time minus the clean time; 0 without one
 */
export function removeProfilerOverhead(parts: readonly Part[], overheadMs: number): Part[] {
  if (overheadMs === 0) return [...parts];
  let remaining = overheadMs;
  const overheadById = new Map<string, number>();
  for (const isLengthened of lengthenedBars) {
    const groupParts = parts.filter(({ id, ms }) => isLengthened(id) && ms > 0);
    const groupMs = groupParts.reduce((total, { ms }) => total + ms, 0);
    const share = groupMs > 0 ? Math.min(1, Math.max(0, remaining) / groupMs) : 0;
    for (const { id, ms } of groupParts) overheadById.set(id, ms * share);
    remaining -= groupMs * share;
  }
  const shortened = parts.map(({ id, ms }) => ({
    id,
    ms: ms - (id === 'unattributed' ? remaining : (overheadById.get(id) ?? 0)),
  }));
  return [...shortened, { id: 'profiler_overhead', ms: overheadMs }];
}
