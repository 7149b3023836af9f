import { environmentFacts } from './environment.js';
import { document, type Document, type Issue } from '../model/document.js';
import { type ProfileResult, profileVersion, type StageResult } from '../model/documents/profile.js';
import { InferscopeError } from '../model/errors.js';
import { hasRows } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import { requireSubject, readStoredRoofline } from './artifact.js';
import { readLatency } from './latency.js';
import { readMemory } from './memory.js';
import { readStages } from './stages.js';
import { readTelemetry } from './telemetry.js';
import { traceScope } from './derived/scope.js';
import { readTimeline } from './trace/timeline.js';
import { utilizationIssues } from './utilization/utilization.js';
import { formatPercent } from '../vocabulary/format.js';

/**
 * The result of `inferscope profile`: time and memory breakdown of a transformer on this machine, compared with its
 * limits. Timing comes from the clean execution, attribution from the profiled one.
 * @throws E_USAGE for a session of another kind, or one that stopped before the engine reported its model
 */
export async function analyzeProfile(session: Session): Promise<Document<ProfileResult>> {
  const { manifest } = session;
  const { workload } = manifest;
  requireSubject(session, 'profile');
  if (!workload) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${session.id} has no profile to analyze`,
      why: 'The run stopped before the engine reported its model.',
      fix: 'Run it again: inferscope profile',
    });
  }
  const roofline = await readStoredRoofline(session);
  const database = await session.connect();
  try {
    const stageResults = await readStages(session, database, roofline);
    const result: ProfileResult = {
      session: {
        id: session.id,
        title: manifest.title,
        started_at: manifest.started_at,
        status: manifest.status,
      },
      workload,
      latency: await readLatency(database),
      stages: stageResults,
      memory: await readMemory(database, workload),
      telemetry: await readTelemetry(database),
      timeline: hasRows(manifest, 'ops') ? await readTimeline(await traceScope(database, manifest)) : null,
      roofline,
      environment: environmentFacts(manifest),
    };
    return document('profile', profileVersion, result, [
      ...session.issues,
      ...utilizationIssues(stageResults),
      ...attributionIssues(stageResults),
    ]);
  } finally {
    await database.close();
  }
}

/** Share of a stage. If profiled and clean passes differ by more, they are not comparable. */
const maxUnexplainedShare = 0.1;

/** Profiler overhead outside the known gaps: operators take longer or shorter under the profiler. */
function attributionIssues(stageResults: readonly StageResult[]): Issue[] {
  return stageResults.flatMap(
    ({ kind, duration_ms: time, profiler_overhead_ms: overhead, breakdown }): Issue[] => {
      if (!time.value || overhead.value === null || !breakdown) return [];
      const gaps = breakdown.gaps_between_operators_ms + breakdown.gaps_at_edges_ms;
      const unexplained = overhead.value - Math.min(gaps, Math.max(0, overhead.value));
      const share = Math.abs(unexplained) / time.value;
      if (share <= maxUnexplainedShare) return [];
      return [
        {
          code: 'attribution_doubtful',
          severity: 'warning',
          text: `In ${kind} the profiled pass was ${formatPercent(share)} ${unexplained > 0 ? 'slower' : 'faster'} than the clean one, apart from the profiler's own gaps: read its bars as shares, or run again on an idle machine.`,
        },
      ];
    },
  );
}
