import type { StageValue } from '../../model/documents/compare.js';

/** Whether two stages compute different numbers of tokens: then their times per token are compared. */
export const hasOtherSize = (from: StageValue, to: StageValue): boolean =>
  typeof from?.tokens === 'number' && typeof to?.tokens === 'number' && from.tokens !== to.tokens;
