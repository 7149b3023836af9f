import { join, relative } from 'node:path';
import process from 'node:process';
import type { Document } from '../model/document.js';
import { exitCodeOf } from '../model/errors.js';
import { print, printDocument, talk, warn } from './output.js';
import { type PageParts, reportPath, writePage } from './report-file.js';
import { claimNames, writeResult } from './results-folder.js';

/** Output of `bench` and `kernels`. */
interface Measured {
  document: Document<unknown>;
  /** Files for the results folder: name and content. */
  files: readonly { name: string; text: string }[];
  page: (parts: PageParts) => string;
  /** For the terminal; not called with --json. */
  text: () => Promise<string>;
}

/**
 * Writes report and result files, prints text or document with their paths, and sets the exit code of an interrupted measurement.
 * @param folder of the result files
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function showMeasured(
  kept: { id: string; folder: string; interrupted: boolean },
  { document, files, page, text }: Measured,
  { folder, json, quiet }: { folder: string; json?: boolean | undefined; quiet?: boolean | undefined },
): Promise<void> {
  const report = reportPath(kept.folder);
  // With --json an error is itself a document, and stdout has only one. Otherwise print the figures first, in case the
  // disk is full.
  if (!json) print(await text());
  await writePage(report, page);
  const asked = files.map(({ name }) => name);
  const names = claimNames(folder, asked);
  for (const [at, { text: content }] of files.entries()) await writeResult(join(folder, names[at]!), content);
  if (json) printDocument(document);
  if (!quiet) {
    const others = names[0] === asked[0] ? '' : ` (${asked[0]} belongs to another session)`;
    talk(`${names.join(', ')} in ${relative(process.cwd(), folder) || '.'}${others}`);
    talk(`report: ${report}`);
  }
  if (kept.interrupted) {
    warn(`interrupted: session ${kept.id} has what was measured so far`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
}
