import process from 'node:process';
import { explanationOf } from '../advice/explain/session-explanation.js';
import type { AnalyzedSession } from '../facts/session-document.js';
import { exitCodeOf } from '../model/errors.js';
import { openSession } from '../session/open.js';
import { print, printJson, notify, warn } from './output.js';
import { reportPath } from './report-file.js';
import { summaryText, writeAnalyzedReport } from './session-summary.js';

/**
 * Last step of a command that measures: prints the summary or a document, writes report and result files with their paths on stderr, and
 * sets the exit code of an interrupted measurement.
 * @param printed value printed with --json; default: the document
 * @param results writes the command's files and returns a text with their paths
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function showMeasured(
  saved: { id: string; interrupted: boolean },
  analyzed: Exclude<AnalyzedSession, { kind: 'captures' }>,
  { json, quiet }: { json?: boolean | undefined; quiet?: boolean | undefined },
  { printed = analyzed.document, results }: { printed?: unknown; results?: () => string } = {},
): Promise<void> {
  const session = await openSession(saved.id);
  const explain = await explanationOf(session, analyzed);
  // With --json an error is itself a document, and stdout has only one. Otherwise print the figures first, in case the
  // disk is full.
  if (!json) print(await summaryText(analyzed, session.user.name ?? session.id, explain));
  const report = reportPath(session.folder);
  await writeAnalyzedReport(analyzed, report, explain);
  const written = results?.();
  if (json) printJson(printed);
  if (!quiet) {
    if (written !== undefined) notify(`  ${written}`);
    notify(`  report: ${report}`);
  }
  if (saved.interrupted) {
    warn(`interrupted: session ${saved.id} has what was measured so far`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
}
