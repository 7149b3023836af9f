import { barRank } from '../../model/bars.js';
import type { Part } from './split.js';

/** Bars below a picosecond are rounding errors, ms. */
const roundingMs = 1e-9;

/**
 * Ids of the bars with time, in display order; within one head the largest first. `unattributed` and `roofline` are
 * always listed.
 */
export function orderedIds(parts: readonly Part[]): string[] {
  return parts
    .filter(({ id, ms }) => id === 'unattributed' || id === 'roofline' || Math.abs(ms) > roundingMs)
    .toSorted((a, b) => barRank(a.id) - barRank(b.id) || b.ms - a.ms)
    .map(({ id }) => id);
}
