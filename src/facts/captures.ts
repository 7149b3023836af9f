import type { CaptureKind, CapturesResult, DocumentOf } from '../model/documents/by-kind.js';
import type { ManifestData } from '../model/manifest.js';
import { hasRows, hasSubject } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { cachedAnswer } from '../session/cached-answer.js';
import { analyzeCollectives } from './collectives/collectives.js';
import { analyzeCounters } from './counters/counters.js';
import { analyzeGemms } from './gemms/gemms.js';
import { analyzeTrace } from './trace/trace.js';
import { utilizationOfSteps } from './utilization/utilization.js';

/** The documents of a capture session with the condition and function of each, most important first. */
const captures: {
  [K in CaptureKind]: {
    matches: (manifest: ManifestData) => boolean;
    analyze: (session: Session) => Promise<DocumentOf[K] | null>;
  };
} = {
  // Without a GPU, operators alone make the timeline.
  trace: { matches: (manifest) => hasSubject(manifest, 'timeline'), analyze: cachedTrace },
  // Steps that a program recorded without a profiler.
  utilization: { matches: (manifest) => hasSubject(manifest, 'steps'), analyze: utilizationOfSteps },
  counters: { matches: (manifest) => hasSubject(manifest, 'counters'), analyze: analyzeCounters },
  gemms: {
    matches: (manifest) =>
      hasSubject(manifest, 'gemms') || (hasRows(manifest, 'kernels') && hasRows(manifest, 'ops')),
    analyze: analyzeGemms,
  },
  collectives: { matches: (manifest) => hasSubject(manifest, 'collectives'), analyze: analyzeCollectives },
};

export async function analyzeCaptures(session: Session): Promise<CapturesResult> {
  const { id, kind, title, started_at } = session.manifest;
  const capturesResult: Record<string, unknown> = { session: { id, kind, title, started_at } };
  for (const [name, { matches, analyze }] of Object.entries(captures))
    capturesResult[name] = matches(session.manifest) ? await analyze(session) : null;
  return capturesResult as unknown as CapturesResult;
}

async function cachedTrace(session: Session): Promise<DocumentOf['trace']> {
  const { traceDocumentSchema } = await import('../model/documents/trace.js');
  return cachedAnswer(session, 'trace', traceDocumentSchema, () => analyzeTrace(session));
}
