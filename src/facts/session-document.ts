import type { DocumentOf, AnyDocument } from '../model/documents/by-kind.js';
import type { Document } from '../model/document.js';
import { leadOf, type Subject } from '../model/subjects.js';
import type { Session } from '../session/open.js';

type SessionKind =
  | 'bench'
  | 'captures'
  | 'kernels'
  | 'memory'
  | 'monitor'
  | 'profile'
  | 'results'
  | 'roofline'
  | 'serving'
  | 'validate';
/** A session's main document. */
export type AnalyzedSession = AnyDocument<SessionKind>;
type Analyze = (session: Session) => Promise<AnalyzedSession>;

const analysis =
  <K extends SessionKind>(kind: K, analyze: (session: Session) => Promise<DocumentOf[K]>) =>
  async (session: Session): Promise<AnalyzedSession> =>
    ({ kind, document: await analyze(session) }) as AnalyzedSession;

/** Analyses by a session's main subject, loaded on use. All other sessions are captures. */
const analyses: Partial<Record<Subject, Analyze>> = {
  profile: analysis('profile', async (session) => (await import('./profile.js')).analyzeProfile(session)),
  validation: analysis('validate', async (session) =>
    (await import('./validate/history.js')).validationDocument(session),
  ),
  memory: analysis('memory', async (session) =>
    (await import('./memory-profile/memory.js')).analyzeMemory(session),
  ),
  bench: analysis('bench', async (session) => (await import('./bench/bench.js')).analyzeBench(session)),
  load: analysis('serving', async (session) =>
    (await import('./serving/serving.js')).analyzeServing(session),
  ),
  kernels: analysis('kernels', async (session) =>
    (await import('./kernels/kernels.js')).analyzeKernels(session),
  ),
  results: analysis('results', async (session) =>
    (await import('./benchmark-results/results.js')).analyzeResults(session),
  ),
  roofline: async (session) => ({
    kind: 'roofline',
    document: await (await import('./roofs.js')).readGpuRooflineDocument(session),
    session: session.manifest,
  }),
  telemetry: analysis('monitor', async (session) =>
    (await import('./monitor/monitor.js')).analyzeMonitor(session),
  ),
};
const captures = analysis('captures', async (session) =>
  (await import('./captures.js')).analyzeCaptures(session),
);

/** The main analysis of a session; an empty list of captures if there is nothing to summarize. */
export const analyzeSession: Analyze = (session) => {
  const lead = leadOf(session.manifest);
  return ((lead !== null && analyses[lead]) || captures)(session);
};

/** Available documents, most important first. */
export function documentsOf(analyzed: AnalyzedSession): Document<unknown>[] {
  if (analyzed.kind !== 'captures') return [analyzed.document];
  const { session: _session, ...documents } = analyzed.document;
  return Object.values(documents).filter((document) => document !== null);
}
