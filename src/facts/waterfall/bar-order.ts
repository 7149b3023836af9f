import type { Part } from './split.js';

/** Heads of the bars' ids, from what the hardware allows to what was measured. */
export const barOrder = [
  'roofline',
  'serial',
  'kernels',
  'inefficiency',
  'nonessential',
  'exposed_comm',
  'exposed_copy',
  'launch_latency',
  'launch_overhead',
  'synchronization',
  'device_dependency',
  'host',
  'unattributed',
  'profiler_overhead',
] as const;

/** Below a picosecond is rounding, not time. */
const nothing = 1e-9;

/** Ids of the bars that have time, in their order; of one head the largest first. `unattributed` is always said. */
export function orderedIds(parts: readonly Part[]): string[] {
  const rank = (id: string) => (barOrder as readonly string[]).indexOf(id.split('.')[0]!);
  return parts
    .filter(({ id, ms }) => id === 'unattributed' || id === 'roofline' || Math.abs(ms) > nothing)
    .toSorted((a, b) => rank(a.id) - rank(b.id) || b.ms - a.ms)
    .map(({ id }) => id);
}
