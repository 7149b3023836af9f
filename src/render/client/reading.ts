import { followSections } from './contents.js';
import { fitTables, labelCells, sortTables } from './tables.js';

// Functions of every page: sorted and filtered tables, the table of contents, findings that open for paper. Charts are in main.ts.

/** Opens all findings for paper, and restores them afterwards. */
function openFindings(on: boolean): void {
  for (const finding of document.querySelectorAll<HTMLDetailsElement>('.findings > li > details')) {
    if (on && !finding.open) finding.dataset['opened'] = '';
    if ('opened' in finding.dataset) finding.open = on;
    if (!on) delete finding.dataset['opened'];
  }
}

matchMedia('print').addEventListener('change', ({ matches }) => openFindings(matches));
addEventListener('beforeprint', () => openFindings(true));
addEventListener('afterprint', () => openFindings(false));
sortTables(document);
labelCells(document);
fitTables(document);
if (document.querySelector('nav.contents')) followSections(document);
