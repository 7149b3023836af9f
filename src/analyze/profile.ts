import { environmentFacts } from './environment.js';
import { document, type Document, type Issue } from '../model/document.js';
import { type ProfileResult, profileVersion, type StageResult } from '../model/documents/profile.js';
import { InferscopeError } from '../model/errors.js';
import type { Session } from '../session/open.js';
import { requireSubject, storedRoofline } from './artifact.js';
import { diagnosis, doubtfulUnattributed } from './diagnosis.js';
import { latency } from './latency.js';
import { machineLoad } from './machine-load.js';
import { memory } from './memory.js';
import { stages } from './stages.js';
import { suggestions } from './suggestions.js';
import { telemetry } from './telemetry.js';
import { timeline } from './timeline.js';
import { waterfallOf } from './waterfall/profile-waterfalls.js';
import { plannedStates } from './what-if/initial-state.js';

/**
 * The answer of `inferscope profile`: where time and memory of a transformer go on this machine, and how far that is
 * from what it allows. Timing is taken from the clean execution, attribution from the profiled one.
 * @throws E_USAGE for a session of another kind
 */
export async function analyzeProfile(session: Session): Promise<Document<ProfileResult>> {
  const { manifest } = session;
  const { workload } = manifest;
  requireSubject(session, 'profile');
  if (!workload) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${session.id} has no profile to analyse`,
      why: 'The run stopped before the engine reported its model.',
      fix: 'Run it again: inferscope profile',
    });
  }
  const roofline = await storedRoofline(session);
  const database = await session.connect();
  try {
    const found = await stages(database, workload, roofline);
    const parts = {
      workload,
      latency: await latency(database),
      stages: found,
      memory: await memory(database, workload),
    };
    const usableCores = manifest.hardware['cpu_usable_cores'];
    const result: ProfileResult = {
      session: {
        id: session.id,
        title: manifest.title,
        started_at: manifest.started_at,
        status: manifest.status,
      },
      ...parts,
      telemetry: await telemetry(database),
      timeline: await timeline(database),
      roofline,
      suggestions: suggestions(await decodeState(session, found)),
      ...diagnosis({
        ...parts,
        usableCores: typeof usableCores === 'number' ? usableCores : null,
        busy: (await machineLoad(database, manifest)).busy,
      }),
      environment: environmentFacts(manifest),
    };
    return document('profile', profileVersion, result, [...session.issues, ...attributionIssues(found)]);
  } finally {
    await database.close();
  }
}

async function decodeState(session: Session, found: readonly StageResult[]) {
  const decode = found.find(({ kind, bars }) => kind === 'decode' && bars.length > 0);
  const [state] = decode ? await plannedStates(session, [waterfallOf(decode)], []) : [];
  return state ?? null;
}

function attributionIssues(found: readonly StageResult[]): Issue[] {
  return found.flatMap((stage): Issue[] => {
    const unattributed = stage.bars.find(({ id }) => id === 'unattributed')?.ms ?? 0;
    const measured = stage.duration_ms.value;
    if (measured === null || Math.abs(unattributed) <= doubtfulUnattributed * measured) return [];
    const percent = Math.round((100 * Math.abs(unattributed)) / measured);
    return [
      {
        code: 'attribution_doubtful',
        severity: 'warning',
        text: `In ${stage.kind} the profiled pass was ${percent} % ${unattributed < 0 ? 'slower' : 'faster'} than the clean one beyond the profiler's own gaps: read its bars as shares, or run again on an idle machine.`,
      },
    ];
  });
}
