import { stripVTControlCharacters } from 'node:util';
import { join } from 'node:path';
import type { Journal } from '../capture/sweep/journal.js';
import { sweepCsv } from '../export/sweep-csv.js';
import type { Document } from '../model/document.js';
import type { SweepResult } from '../model/documents/sweep.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { sweepView } from '../views/sweep.js';
import { writePage } from './report-file.js';
import { writeResult } from './results-folder.js';
import { makeFolder } from '../model/atomic-write.js';

/** The folder of the sweep's profiles. */
const filesFolder = 'memory-profiles';

/** Columns of the text report. */
const textWidth = 120;

/**
 * Writes CSV, text report and page of a sweep next to its profiles; rewritten when a sweep is resumed.
 * @returns their paths
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeSweepFiles(
  { folder: journalFolder }: Pick<Journal, 'folder'>,
  document: Document<SweepResult>,
): Promise<string[]> {
  const { stamp } = document.data;
  const folder = join(journalFolder, filesFolder);
  makeFolder(folder);
  const csv = join(folder, `batch-bench-results-${stamp}.csv`);
  const text = join(folder, `batch-bench-report-${stamp}.txt`);
  const page = join(folder, `batch-bench-report-${stamp}.html`);
  await writeResult(csv, sweepCsv(document.data));
  // These files are in a folder below that of the sweep.
  const view = sweepView(document, { folder: '..' });
  const rendered = terminalView(view, { width: textWidth, level: 2 });
  await writeResult(text, `${stripVTControlCharacters(rendered)}\n`);
  await writePage(page, (parts) => pageOfView(view, parts));
  return [csv, text, page];
}
