import type { CapturesResult } from '../analyze/captures.js';
import type { Document } from '../model/document.js';
import type { ProfileResult } from '../model/documents/profile.js';
import { openSession, type Session } from '../session/open.js';
import { print, printDocument, talk, terminalWidth } from './output.js';
import { reportPath, writePage, writeReport } from './report-file.js';

/** What a session's own analyses say, in the form its kind has. */
export type Analysed =
  { kind: 'profile'; document: Document<ProfileResult> } | ({ kind: 'captures' } & CapturesResult);

/** `profile` sessions have operators of the embedded engine; all others a timeline, counters or logs of other tools. */
export async function analyzeSession(session: Session): Promise<Analysed> {
  if (session.manifest.kind === 'profile') {
    const { analyzeProfile } = await import('../analyze/profile.js');
    return { kind: 'profile', document: await analyzeProfile(session) };
  }
  const { analyzeCaptures } = await import('../analyze/captures.js');
  return { kind: 'captures', ...(await analyzeCaptures(session)) };
}

/** The documents there are, the most telling first. */
export function documentsOf(analysed: Analysed): Document<unknown>[] {
  if (analysed.kind === 'profile') return [analysed.document];
  const { trace, counters, gemms } = analysed;
  return [trace, counters, gemms].filter((one) => one !== null);
}

export async function writeAnalysed(analysed: Analysed, path: string): Promise<void> {
  if (analysed.kind === 'profile') return writeReport(analysed.document, path);
  const { traceReport } = await import('../report/html/trace.js');
  await writePage(path, (parts) => traceReport(analysed, parts));
}

/** Ends `import` and `run`: the summary in the terminal or one document, and the report in the session's folder. */
export async function showSession(
  id: string,
  { analyze, json }: { analyze: boolean; json?: boolean },
): Promise<void> {
  if (!analyze) {
    print(id);
    return;
  }
  const session = await openSession(id);
  const analysed = await analyzeSession(session);
  const [first] = documentsOf(analysed);
  if (!first) {
    const { showResults } = await import('./results.js');
    if (await showResults(id, { json: json === true })) return;
    talk(nothingToSumUp(session));
    print(id);
    return;
  }
  const path = reportPath(session.folder);
  await writeAnalysed(analysed, path);
  if (json) printDocument(first);
  else print(await analysedText(id, analysed, path));
}

async function analysedText(id: string, analysed: Analysed, path: string): Promise<string> {
  const how = { reportPath: path, width: Math.min(100, terminalWidth()) };
  if (analysed.kind === 'profile') {
    const { profileSummary } = await import('../report/terminal/profile.js');
    return profileSummary(analysed.document, how);
  }
  const { traceSummary } = await import('../report/terminal/trace.js');
  const { countersSummary } = await import('../report/terminal/counters.js');
  const { gemmsSummary } = await import('../report/terminal/gemms.js');
  const { trace, counters, gemms } = analysed;
  // The end of the output is what stays on the screen.
  const parts = [
    gemms && gemmsSummary(gemms, how),
    counters && countersSummary(counters, how),
    trace ? traceSummary(trace, how) : `  Session ${id} kept · report:\n  ${path}`,
  ];
  return parts.filter((part) => part !== null).join('\n\n');
}

/** A program that used no GPU, or one that no profiler was around. */
function nothingToSumUp({ id, manifest }: Session): string {
  const kept = Object.keys(manifest.tables).join(', ') || 'no table';
  const alone = manifest.kind === 'run' && manifest.executions.every(({ purpose }) => purpose === 'clean');
  const why = alone
    ? 'no profiler was around the program: add --evaluator nsys (GPU) or --evaluator torch (PyTorch, CPU too)'
    : 'no kernels, counters or matrix products were recorded';
  return `nothing to sum up: ${why}\n  session ${id} holds ${kept}; inferscope sql reads them`;
}
