import type { Rule } from '../rule.js';

/** Every rule, one file each; their order is only that of `rules` in the document. */
export const rules: readonly Rule[] = [];
