import type { Document } from '../model/document.js';
import type { CapturesResult } from '../model/documents/captures.js';
import type { TraceResult } from '../model/documents/trace.js';
import { hasRows, holds } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { remembered } from '../session/remembered.js';
import { analyzeCollectives } from './collectives/collectives.js';
import { analyzeCounters } from './counters/counters.js';
import { analyzeGemms } from './gemms/gemms.js';
import { analyzeTrace } from './trace/trace.js';
import { utilizationOfSteps } from './utilization/utilization.js';

export async function analyzeCaptures(session: Session): Promise<CapturesResult> {
  const { manifest } = session;
  const products = holds(manifest, 'gemms') || (hasRows(manifest, 'kernels') && hasRows(manifest, 'ops'));
  const { id, kind, title, started_at } = manifest;
  return {
    session: { id, kind, title, started_at },
    // Operators alone are the timeline of a program without a GPU.
    trace: holds(manifest, 'timeline') ? await traceOf(session) : null,
    steps: holds(manifest, 'steps') ? await utilizationOfSteps(session) : null,
    counters: holds(manifest, 'counters') ? await analyzeCounters(session) : null,
    gemms: products ? await analyzeGemms(session) : null,
    collectives: holds(manifest, 'collectives') ? await analyzeCollectives(session) : null,
  };
}

async function traceOf(session: Session): Promise<Document<TraceResult>> {
  const { traceDocumentSchema } = await import('../model/documents/trace.js');
  return remembered(session, 'trace', traceDocumentSchema, () => analyzeTrace(session));
}
