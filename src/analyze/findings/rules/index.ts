import type { Rule } from '../rule.js';
import { l2HitRate } from './l2-hit-rate.js';
import { bankConflicts } from './bank-conflicts.js';
import { uncoalescedAccess } from './uncoalesced-access.js';
import { lowOccupancy } from './low-occupancy.js';

/** Every rule, one file each; their order is only that of `rules` in the document. */
export const rules: readonly Rule[] = [lowOccupancy, uncoalescedAccess, bankConflicts, l2HitRate];
