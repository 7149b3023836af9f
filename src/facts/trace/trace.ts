import { timelineScope } from '../waterfall/ranks.js';
import { environmentFacts } from '../environment.js';
import { document, type Document } from '../../model/document.js';
import { type TraceResult, traceVersion } from '../../model/documents/trace.js';
import type { Session } from '../../session/open.js';
import { utilizationIssues, utilizationOfTrace } from '../utilization/utilization.js';
import { attribution } from './attribution.js';
import { classes } from './classes.js';
import { copies } from './copies.js';
import { devices } from './devices.js';
import { drift } from './drift.js';
import { idle } from './idle.js';
import { type Spreads, startSpreads } from './kernel-spreads.js';
import { kernels } from './kernels.js';
import { launches } from './launches.js';
import { memory } from './memory.js';
import { operators } from './operators.js';
import { overlap } from './overlap.js';
import { phases } from './phases.js';
import type { ScopeOptions, TraceScope } from './scope.js';
import { shortKernels } from './short-kernels.js';
import { telemetry } from './telemetry.js';
import { timeline } from './timeline.js';
import { windowClocks } from './windows.js';
import { sessionIdentity } from '../session-identity.js';

/**
 * Analyzes a GPU timeline: one rank and device of one capture and execution, never a sum over several.
 * @throws E_USAGE if the session has no kernels, or none for the requested rank and device
 */
export async function analyzeTrace(
  session: Session,
  options: ScopeOptions = {},
): Promise<Document<TraceResult>> {
  const database = await session.connect();
  try {
    const { scope } = await timelineScope(session, database, options);
    const started = await startSpreads(session, scope);
    try {
      return await documentOf(session, scope, started.spreads);
    } finally {
      await started.close();
    }
  } finally {
    await database.close();
  }
}

async function documentOf(
  session: Session,
  scope: TraceScope,
  loadSpreads: () => Promise<Spreads>,
): Promise<Document<TraceResult>> {
  const { manifest } = session;
  const clocks = await windowClocks(scope);
  const phaseResult = await phases(scope, clocks);
  const utilization = await utilizationOfTrace(session, scope, clocks);
  const identity: TraceResult['session'] = sessionIdentity(session);
  const rest = {
    idle: await idle(scope),
    drift: await drift(scope),
    overlap: await overlap(scope),
    operators: await operators(scope, phaseResult),
    short_kernels: await shortKernels(scope),
    attribution: await attribution(scope, session.issues),
    timeline: await timeline(scope),
    telemetry: await telemetry(scope),
    memory: await memory(scope),
    environment: environmentFacts(manifest),
    utilization,
  };
  const spreads = await loadSpreads();
  const result: TraceResult = {
    session: identity,
    workload: manifest.workload,
    source: scope.source,
    devices: await devices(scope, manifest),
    phases: phaseResult,
    ...(await kernels(scope, phaseResult, spreads.launched)),
    classes: await classes(scope, phaseResult),
    copies: await copies(scope),
    api_calls: spreads.calls,
    launches: await launches(scope, phaseResult, manifest.workload, spreads),
    ...rest,
  };
  const faults = utilizationIssues(utilization?.stages ?? []);
  return document('trace', traceVersion, result, [...session.issues, ...faults]);
}
