import type { Document } from '../model/document.js';
import type { CountersResult } from '../model/documents/counters.js';
import type { GemmsResult } from '../model/documents/gemms.js';
import type { TraceResult } from '../model/documents/trace.js';
import { hasRows, holds } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { remembered } from '../session/remembered.js';
import { analyzeCounters } from './counters/counters.js';
import { analyzeGemms } from './gemms/gemms.js';
import { analyzeTrace } from './trace/trace.js';

/** Everything other tools' captures in a session answer; null where the session has no rows for it. */
export interface CapturesResult {
  session: { id: string; kind: string; title: string; started_at: string };
  trace: Document<TraceResult> | null;
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
}

export async function analyzeCaptures(session: Session): Promise<CapturesResult> {
  const { manifest } = session;
  const products = holds(manifest, 'gemms') || (hasRows(manifest, 'kernels') && hasRows(manifest, 'ops'));
  const { id, kind, title, started_at } = manifest;
  return {
    session: { id, kind, title, started_at },
    // Operators alone are a timeline of a program that uses no GPU.
    trace: holds(manifest, 'timeline') ? await traceOf(session) : null,
    counters: holds(manifest, 'counters') ? await analyzeCounters(session) : null,
    gemms: products ? await analyzeGemms(session) : null,
  };
}

async function traceOf(session: Session): Promise<Document<TraceResult>> {
  const { traceDocumentSchema } = await import('../model/documents/trace.js');
  return remembered(session, 'trace', traceDocumentSchema, () => analyzeTrace(session));
}
