import { barRank } from '../../model/bars.js';
import type { Part } from './split.js';

/** Below a picosecond is rounding, not time. */
const nothing = 1e-9;

/** Ids of the bars that have time, in their order; of one head the largest first. `unattributed` is always said. */
export function orderedIds(parts: readonly Part[]): string[] {
  return parts
    .filter(({ id, ms }) => id === 'unattributed' || id === 'roofline' || Math.abs(ms) > nothing)
    .toSorted((a, b) => barRank(a.id) - barRank(b.id) || b.ms - a.ms)
    .map(({ id }) => id);
}
