import { stripVTControlCharacters } from 'node:util';
import { join } from 'node:path';
import type { Journal } from '../capture/sweep/journal.js';
import { sweepCsv } from '../export/sweep-csv.js';
import type { Document } from '../model/document.js';
import type { SweepResult } from '../model/documents/sweep.js';
import { sweepText } from '../report/terminal/sweep.js';
import { writePage } from './report-file.js';
import { writeResult } from './results-folder.js';

/** Columns of the text report. */
const textWidth = 120;

/**
 * CSV, text report and page of a sweep, beside its journal; written anew each time, for a sweep that is continued.
 * @returns their paths
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeSweepFiles(
  { folder }: Pick<Journal, 'folder'>,
  document: Document<SweepResult>,
): Promise<string[]> {
  const { stamp } = document.data;
  const csv = join(folder, `batch-bench-results-${stamp}.csv`);
  const text = join(folder, `batch-bench-report-${stamp}.txt`);
  const page = join(folder, `batch-bench-report-${stamp}.html`);
  await writeResult(csv, sweepCsv(document.data));
  await writeResult(text, `${stripVTControlCharacters(sweepText(document, textWidth))}\n`);
  const { sweepReport } = await import('../report/html/sweep/sweep.js');
  await writePage(page, (parts) => sweepReport(document, parts));
  return [csv, text, page];
}
