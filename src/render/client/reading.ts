import { followSections } from './contents.js';
import { fitTables, labelCells, sortTables } from './tables.js';

// What every page has: sorted and filtered tables, contents that follow, findings that open for paper. Charts are in main.ts.

/** Findings are read on paper too, where nothing can be opened; afterwards each is as it was. */
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
