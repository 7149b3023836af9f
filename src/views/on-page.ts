import type { Section } from './block.js';

/** Sections that a page shows below what was asked, and no other medium. */
export const onPageOnly = (sections: readonly Section[]): Section[] =>
  sections.map((section) => ({ ...section, level: 3 }));
