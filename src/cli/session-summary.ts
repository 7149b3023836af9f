import { join } from 'node:path';
import process from 'node:process';
import type { CapturesResult } from '../model/documents/captures.js';
import { noKernelsIssue } from '../import/importer.js';
import type { Document } from '../model/document.js';
import type { BenchResult } from '../model/documents/bench.js';
import type { ExplainResult } from '../model/documents/explain.js';
import type { KernelsResult } from '../model/documents/kernels.js';
import { InferscopeError } from '../model/errors.js';
import type { GpuRooflineDocument } from '../model/documents/roofline.js';
import type { MemoryResult } from '../model/documents/memory-result.js';
import type { MonitorResult } from '../model/documents/monitor.js';
import type { ProfileResult } from '../model/documents/profile.js';
import type { BenchmarkResults } from '../model/documents/results.js';
import type { ServingResult } from '../model/documents/serving.js';
import type { Validation } from '../model/documents/validate.js';
import { nestedSession } from '../model/outer-run.js';
import { leadOf } from '../model/subjects.js';
import { homeFolders } from '../session/home.js';
import { openSession, type Session } from '../session/open.js';
import { viewOf } from '../views/registry.js';
import { print, printDocument, reportError, talk, terminalWidth } from './output.js';
import { reportPath, writePage } from './report-file.js';

/** What a session's own analyses say, in the form its kind has. */
export type Analysed =
  | { kind: 'profile'; document: Document<ProfileResult> }
  | { kind: 'memory'; document: Document<MemoryResult> }
  | { kind: 'validate'; document: Document<Validation> }
  | { kind: 'bench'; document: Document<BenchResult> }
  | { kind: 'serving'; document: Document<ServingResult> }
  | { kind: 'results'; document: Document<BenchmarkResults> }
  | { kind: 'monitor'; document: Document<MonitorResult> }
  | { kind: 'kernels'; document: Document<KernelsResult> }
  | { kind: 'roofline'; document: GpuRooflineDocument; session: Session['manifest'] }
  | { kind: 'captures'; document: CapturesResult };

/** What a session is mainly about, analysed; captures without any where it holds nothing to sum up. */
export async function analyzeSession(session: Session): Promise<Analysed> {
  switch (leadOf(session.manifest)) {
    case 'profile': {
      const { analyzeProfile } = await import('../facts/profile.js');
      return { kind: 'profile', document: await analyzeProfile(session) };
    }
    case 'validation': {
      const { validationDocument } = await import('../facts/validate/history.js');
      return { kind: 'validate', document: await validationDocument(session) };
    }
    case 'memory': {
      const { analyzeMemory } = await import('../facts/memory-profile/memory.js');
      return { kind: 'memory', document: await analyzeMemory(session) };
    }
    case 'bench': {
      const { analyzeBench } = await import('../facts/bench/bench.js');
      return { kind: 'bench', document: await analyzeBench(session) };
    }
    case 'load': {
      const { analyzeServing } = await import('../facts/serving/serving.js');
      return { kind: 'serving', document: await analyzeServing(session) };
    }
    case 'kernels': {
      const { analyzeKernels } = await import('../facts/kernels/kernels.js');
      return { kind: 'kernels', document: await analyzeKernels(session) };
    }
    case 'results': {
      const { analyzeResults } = await import('../facts/benchmark-results/results.js');
      return { kind: 'results', document: await analyzeResults(session) };
    }
    case 'roofline': {
      const { gpuRooflineOfSession } = await import('../facts/roofs.js');
      return { kind: 'roofline', document: await gpuRooflineOfSession(session), session: session.manifest };
    }
    case 'telemetry': {
      const { analyzeMonitor } = await import('../facts/monitor/monitor.js');
      return { kind: 'monitor', document: await analyzeMonitor(session) };
    }
    default: {
      const { analyzeCaptures } = await import('../facts/captures.js');
      return { kind: 'captures', document: await analyzeCaptures(session) };
    }
  }
}

/** The documents there are, the most telling first. */
export function documentsOf(analysed: Analysed): Document<unknown>[] {
  if (analysed.kind !== 'captures') return [analysed.document];
  const { session: _session, ...documents } = analysed.document;
  return Object.values(documents).filter((one) => one !== null);
}

/** Kinds that have waterfall and findings; those that say why, where there is neither, have `true`. */
const explained: Partial<Record<Analysed['kind'], boolean>> = {
  profile: false,
  bench: true,
  serving: true,
  results: false,
  memory: false,
  captures: true,
};

/** What the summaries and pages of a session lead with: sentences, waterfall, findings; null for kinds that have none. */
export async function explanationOf(
  session: Session,
  { kind }: Pick<Analysed, 'kind'>,
): Promise<Document<ExplainResult> | null> {
  const always = explained[kind];
  if (always === undefined) return null;
  const { rememberedExplanation } = await import('../advice/explain/explain.js');
  const explain = await rememberedExplanation(session);
  return always || explain.data.stages.length + explain.data.findings.length > 0 ? explain : null;
}

/**
 * Both from one database: the explanation begins with tables that the analysis has made in it.
 * @param known takes the analysis while the explanation is still being made
 */
export async function analyzeAndExplain(
  session: Session,
  known: (analysed: Analysed) => void = () => {},
): Promise<{ analysed: Analysed; explain: Document<ExplainResult> | null }> {
  const database = await session.connect();
  try {
    const analysed = await analyzeSession(session);
    known(analysed);
    const explain = documentsOf(analysed).length > 0 ? await explanationOf(session, analysed) : null;
    return { analysed, explain };
  } finally {
    await database.close();
  }
}

/** Writes the HTML report. @throws E_DISK_FULL, E_HOME_UNWRITABLE */
export async function writeAnalysed(
  analysed: Analysed,
  path: string,
  explain: Document<ExplainResult> | null = null,
): Promise<void> {
  const view = await viewOf(analysed);
  const { pageOfView } = await import('../render/html/view.js');
  return writePage(path, (parts) => pageOfView(view, { ...parts, explain }));
}

/** The report as text, with its details. */
export async function reportText(
  analysed: Analysed,
  explain: Document<ExplainResult> | null,
  format: 'text' | 'md',
): Promise<string> {
  const view = await viewOf(analysed);
  if (format === 'md') {
    const { markdownView } = await import('../render/markdown.js');
    return markdownView(view);
  }
  const { terminalView } = await import('../render/terminal/view.js');
  return terminalView(view, { width: terminalWidth(), level: 2, explain });
}

/**
 * Writes the report of a benchmark or load test into its session's folder, for the commands that made it.
 * @returns its path, and the explanation it leads with
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function keepReport(
  analysed: Extract<Analysed, { kind: 'bench' | 'serving' }>,
): Promise<{ path: string; explain: Document<ExplainResult> | null }> {
  const { id } = analysed.document.data.session;
  const path = reportPath(join(homeFolders().sessions, id));
  const explain = await explanationOf(await openSession(id), analysed);
  await writeAnalysed(analysed, path, explain);
  return { path, explain };
}

/** Without a summary: the session's id, or what it holds as a document. */
async function printSession(session: Session, json: boolean | undefined): Promise<void> {
  if (!json) return print(session.id);
  const { sessionShowDocument } = await import('./session-show.js');
  printDocument(sessionShowDocument(session));
}

/**
 * Ends `import` and `run`: the summary in the terminal or one document, and the report in the session's folder.
 * @param failed the program did, and it is known why: that nothing was recorded is no news then
 */
export async function showSession(
  id: string,
  { analyze, json }: { analyze: boolean; json?: boolean },
  failed = false,
): Promise<void> {
  if (!analyze && !json) return print(id);
  const session = await openSession(id);
  if (!analyze) return printSession(session, json);
  // A program that reads the document need not wait for the page.
  const { analysed, explain } = await analyzeAndExplain(session, (summary) => {
    const [document] = documentsOf(summary);
    if (json && document) printDocument(document);
  });
  if (documentsOf(analysed).length === 0) {
    if (!failed) talk(nothingToSumUp(session));
    return printSession(session, json);
  }
  const path = reportPath(session.folder);
  // On a full disk the page is lost, and the summary is not.
  const unwritten = await failureOf(writeAnalysed(analysed, path, explain));
  if (!json) {
    print(await analysedText(analysed, path, explain));
    const { narrativeText } = await import('./analyze-narrative.js');
    const narrative = await narrativeText(session, explain);
    if (narrative !== null) print(`\n${narrative}`);
  }
  if (unwritten) process.exitCode = reportError(unwritten, false);
}

/** A known failure, as a value. */
async function failureOf(work: Promise<void>): Promise<InferscopeError | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof InferscopeError) return error;
    throw error;
  }
}

/** The summary in the terminal, with the path of the report. */
export async function analysedText(
  analysed: Analysed,
  path: string,
  explain: Document<ExplainResult> | null,
): Promise<string> {
  const view = await viewOf(analysed);
  const { terminalView } = await import('../render/terminal/view.js');
  return `${terminalView(view, { width: terminalWidth(), explain })}\n  report: ${path}`;
}

/** A program that used no GPU, or one that no profiler was around. */
function nothingToSumUp({ id, manifest, issues }: Session): string {
  const inside = issues.filter(({ code }) => code === nestedSession).map(({ text }) => text);
  if (inside.length > 0) return ['nothing to sum up here', ...inside].join('\n  ');
  const kept =
    Object.entries(manifest.tables)
      .filter(([, files]) => files.some(({ rows }) => rows > 0))
      .map(([table]) => table)
      .join(', ') || 'no table';
  const alone = manifest.kind === 'run' && manifest.executions.every(({ purpose }) => purpose === 'clean');
  const lost = issues.find(({ code, severity }) => code === noKernelsIssue && severity === 'warning');
  const why = alone
    ? 'no profiler was around the program: add --evaluator nsys (GPU) or --evaluator torch (PyTorch, CPU too)'
    : (lost?.text ?? 'no kernels, counters or matrix products were recorded');
  return `nothing to sum up: ${why}\n  session ${id} holds ${kept}; inferscope sql reads them`;
}
