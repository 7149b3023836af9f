import { jointKinds } from '../../model/documents/trace-phase.js';
import type { ExplainResult, StageWaterfall } from '../../model/documents/explain.js';
import { firstSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import type { ScopeOptions, TraceScope } from '../trace/scope.js';
import { benchWaterfalls } from './bench-waterfalls.js';
import { resultsWaterfalls, servingWaterfalls } from './serving-waterfalls.js';
import { operatorWaterfalls } from './operator-waterfalls.js';
import { timelineScope, withRanks } from './ranks.js';
import { recordedWaterfalls } from './recorded-waterfalls.js';
import { profileWaterfalls } from './profile-waterfalls.js';
import { timelineWaterfalls } from './waterfall.js';

const noServerSteps = 'the client sees requests, not the steps of the server';

interface SessionWaterfalls {
  stages: StageWaterfall[];
  withoutWaterfall: ExplainResult['without_waterfall'];
  /** The timeline of the waterfalls, with its views in the database; null without a timeline. */
  scope: TraceScope | null;
  /** Why this rank is shown; null with one rank, or if the user chose it. */
  whyRank?: string | null;
}

/**
 * Waterfalls that findings are about: steps, ranges named by the program, or the whole capture. Requests consist of steps
 * and sampling is inside them, so they never count; loading and warm-up happen once, so they count only if there are no
 * others.
 */
export function judgedStages(stages: readonly StageWaterfall[]): StageWaterfall[] {
  const steps = stages.filter(({ kind }) => [...jointKinds, 'other'].includes(kind));
  if (steps.length > 0) return steps;
  return stages.filter(({ kind }) => kind === 'load' || kind === 'warmup');
}

/**
 * Waterfalls of a session from its best source, or the reason for none: a profile, a benchmark, a load test, a timeline,
 * imported results, recorded steps.
 * @param times.clean false leaves the bars of timelines and operators as recorded under the profiler
 */
export async function sessionWaterfalls(
  session: Session,
  database: SessionDatabase,
  options: ScopeOptions = {},
  times: { clean?: boolean } = {},
): Promise<SessionWaterfalls> {
  const { manifest } = session;
  const { workload } = manifest;
  const source = firstSubject(manifest, 'profile', 'bench', 'load', 'timeline', 'results', 'steps');
  const noWaterfall = (reason: string, scope: TraceScope | null = null): SessionWaterfalls => ({
    stages: [],
    withoutWaterfall: [{ stage: null, reason }],
    scope,
  });
  if (source === 'profile') {
    if (!workload) return noWaterfall('the run stopped before the engine reported its model');
    const profile = await profileWaterfalls(session, database, workload);
    return { stages: profile.stages, withoutWaterfall: profile.withoutWaterfall, scope: null };
  }
  if (source === 'bench') {
    if (!workload) return noWaterfall('the benchmark stopped before the engine reported its model');
    const stages = await benchWaterfalls(session);
    return stages.length > 0
      ? { stages, withoutWaterfall: [], scope: null }
      : noWaterfall(
          'no stage of the benchmark was timed: its points failed, or the engine reported none (via=bench)',
        );
  }
  if (source === 'load') {
    const stages = await servingWaterfalls(session, database);
    if (stages.length === 0) return noWaterfall('no request of the load test was answered');
    return { stages, withoutWaterfall: [{ stage: 'decode', reason: noServerSteps }], scope: null };
  }
  if (source === 'results') {
    const stages = await resultsWaterfalls(database);
    return stages.length > 0
      ? { stages, withoutWaterfall: [{ stage: 'decode', reason: noServerSteps }], scope: null }
      : noWaterfall(
          'the imported figures do not have both mean end-to-end latency and mean TTFT by the definitions of inferscope',
        );
  }
  if (source === 'steps') {
    const stages = await recordedWaterfalls(session, database);
    return stages.length > 0
      ? { stages, withoutWaterfall: [], scope: null }
      : noWaterfall('all recorded steps were first calls, which include warm-up');
  }
  if (source === null) {
    return noWaterfall('the session has no kernel timeline and no benchmark stages');
  }
  const { scope, shown } = await timelineScope(session, database, options);
  if (!scope.source.gpu_used) {
    return { ...(await operatorWaterfalls(session, database, scope, times)), scope };
  }
  const { stages, withoutWaterfall } = await timelineWaterfalls(session, database, scope, times);
  return {
    stages: shown ? withRanks(stages, shown, shown.focus) : stages,
    withoutWaterfall,
    scope,
    whyRank: shown?.why ?? null,
  };
}
