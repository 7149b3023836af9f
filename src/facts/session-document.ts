import type { DocumentOf, Shown } from '../model/documents/by-kind.js';
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
export type Analysed = Shown<SessionKind>;
type Analyse = (session: Session) => Promise<Analysed>;

const by =
  <K extends SessionKind>(kind: K, analyse: (session: Session) => Promise<DocumentOf[K]>) =>
  async (session: Session): Promise<Analysed> =>
    ({ kind, document: await analyse(session) }) as Analysed;

/** How sessions that are mainly about a subject are analyzed, loaded when it is needed; all others are captures. */
const analyses: Partial<Record<Subject, Analyse>> = {
  profile: by('profile', async (one) => (await import('./profile.js')).analyzeProfile(one)),
  validation: by('validate', async (one) => (await import('./validate/history.js')).validationDocument(one)),
  memory: by('memory', async (one) => (await import('./memory-profile/memory.js')).analyzeMemory(one)),
  bench: by('bench', async (one) => (await import('./bench/bench.js')).analyzeBench(one)),
  load: by('serving', async (one) => (await import('./serving/serving.js')).analyzeServing(one)),
  kernels: by('kernels', async (one) => (await import('./kernels/kernels.js')).analyzeKernels(one)),
  results: by('results', async (one) => (await import('./benchmark-results/results.js')).analyzeResults(one)),
  roofline: async (one) => ({
    kind: 'roofline',
    document: await (await import('./roofs.js')).gpuRooflineOfSession(one),
    session: one.manifest,
  }),
  telemetry: by('monitor', async (one) => (await import('./monitor/monitor.js')).analyzeMonitor(one)),
};
const captures = by('captures', async (one) => (await import('./captures.js')).analyzeCaptures(one));

/** The main analysis of a session; an empty list of captures if there is nothing to summarize. */
export const analyzeSession: Analyse = (session) => {
  const lead = leadOf(session.manifest);
  return ((lead !== null && analyses[lead]) || captures)(session);
};

/** Available documents, most important first. */
export function documentsOf(analysed: Analysed): Document<unknown>[] {
  if (analysed.kind !== 'captures') return [analysed.document];
  const { session: _session, ...documents } = analysed.document;
  return Object.values(documents).filter((one) => one !== null);
}
