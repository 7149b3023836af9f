import { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { type AnalyzedSession, documentsOf } from '../facts/session-document.js';
import process from 'node:process';
import { noKernelsIssue } from '../import/importer.js';
import type { Document } from '../model/document.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { InferscopeError } from '../model/errors.js';
import { nestedSession } from '../model/outer-run.js';
import { openSession, type Session } from '../session/open.js';
import { viewOf } from '../views/registry.js';
import { browserLine, print, printDocument, reportError, notify, terminalWidth } from './output.js';
import { reportPath, writePage } from './report-file.js';

/** Writes the HTML report. @throws E_DISK_FULL, E_HOME_UNWRITABLE */
export async function writeAnalyzedReport(
  analyzed: AnalyzedSession,
  path: string,
  explain: Document<ExplainResult> | null = null,
): Promise<void> {
  const view = await viewOf(analyzed);
  const { pageOfView } = await import('../render/html/view.js');
  return writePage(path, (parts) => pageOfView(view, { ...parts, explain }));
}

/** The report as text or Markdown, with its details. */
export async function reportText(
  analyzed: AnalyzedSession,
  explain: Document<ExplainResult> | null,
  format: 'text' | 'md',
): Promise<string> {
  const view = await viewOf(analyzed);
  if (format === 'md') {
    const [{ markdownView }, { withExplanation }] = await Promise.all([
      import('../render/markdown.js'),
      import('../views/explain.js'),
    ]);
    return markdownView(withExplanation(view, explain));
  }
  const { terminalView } = await import('../render/terminal/view.js');
  return terminalView(view, { width: terminalWidth(), level: 2, explain });
}

/** Without a summary: prints the session's id, or its contents as a document. */
async function printSession(session: Session, json: boolean | undefined): Promise<void> {
  if (!json) return print(session.id);
  const { sessionShowDocument } = await import('./session-show.js');
  printDocument(sessionShowDocument(session));
}

/**
 * Final step of `import`, `run` and `session join`: prints the summary or one document, and writes the report into the
 * session's folder; without `analyze` prints only the session's id or contents.
 * @param failed the program failed for a known reason, which explains why nothing was recorded
 */
export async function showSession(
  id: string,
  { analyze, json }: { analyze: boolean; json?: boolean },
  failed = false,
): Promise<void> {
  if (!analyze && !json) return print(id);
  const session = await openSession(id);
  if (!analyze) return printSession(session, json);
  // Print the document before the page is written.
  const { analyzed, explain } = await analyzeAndExplain(session, (summary) => {
    const [document] = documentsOf(summary);
    if (json && document) printDocument(document);
  });
  if (documentsOf(analyzed).length === 0) {
    if (!failed) notify(noSummaryText(session));
    return printSession(session, json);
  }
  const path = reportPath(session.folder);
  // A full disk prevents the page, not the summary.
  const reportFailure = await failureOf(writeAnalyzedReport(analyzed, path, explain));
  if (!json) {
    print(withReportPath(await summaryText(analyzed, session.user.name ?? session.id, explain), path));
    const { narrateExplanation: narrativeText } = await import('./analyze-narrative.js');
    const narrative = await narrativeText(session, explain);
    if (narrative !== null) print(`\n${narrative}`);
  }
  if (reportFailure) process.exitCode = reportError(reportFailure, false);
}

/** Returns a known failure as a value. */
async function failureOf(work: Promise<void>): Promise<InferscopeError | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof InferscopeError) return error;
    throw error;
  }
}

/** The summary in the terminal, with the command that shows more. */
export async function summaryText(
  analyzed: AnalyzedSession,
  session: string,
  explain: Document<ExplainResult> | null,
): Promise<string> {
  const view = await viewOf(analyzed);
  const { terminalView } = await import('../render/terminal/view.js');
  return `${terminalView(view, { width: terminalWidth(), explain })}\n${browserLine(session)}`;
}

/** A summary with the path of its report. */
export const withReportPath = (text: string, path: string): string => `${text}\n  report: ${path}`;

/** Shown for a program that used no GPU, or ran without a profiler. */
function noSummaryText({ id, manifest, issues }: Session): string {
  const nestedNotes = issues.filter(({ code }) => code === nestedSession).map(({ text }) => text);
  if (nestedNotes.length > 0) return ['no summary', ...nestedNotes].join('\n  ');
  const tableNames =
    Object.entries(manifest.tables)
      .filter(([, files]) => files.some(({ rows }) => rows > 0))
      .map(([table]) => table)
      .join(', ') || 'no table';
  const withoutProfiler =
    manifest.kind === 'run' && manifest.executions.every(({ purpose }) => purpose === 'clean');
  const noKernels = issues.find(({ code, severity }) => code === noKernelsIssue && severity === 'warning');
  const why = withoutProfiler
    ? 'the program ran without a profiler: add --evaluator nsys (GPU) or --evaluator torch (PyTorch, also on CPU)'
    : (noKernels?.text ?? 'no kernels, counters or GEMMs were recorded');
  return `no summary: ${why}\n  session ${id} has ${tableNames}; inferscope sql queries it`;
}
