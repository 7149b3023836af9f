import type { Section } from './block.js';

/** Marks sections as shown only on a page, below the requested ones. */
export const onPageOnly = (sections: readonly Section[]): Section[] =>
  sections.map((section) => ({ ...section, level: 3 }));
