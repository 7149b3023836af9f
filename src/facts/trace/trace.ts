import { timelineScope } from '../waterfall/ranks.js';
import { environmentFacts } from '../environment.js';
import { document, type Document } from '../../model/document.js';
import { type TraceResult, traceVersion } from '../../model/documents/trace.js';
import type { Session } from '../../session/open.js';
import { interruptedStepIssues } from '../utilization/steps.js';
import { utilizationIssues, utilizationOfTrace } from '../utilization/utilization.js';
import { readAttribution } from './attribution.js';
import { readClasses } from './classes.js';
import { readCopies } from './copies.js';
import { readDevices } from './devices.js';
import { readDrift } from './drift.js';
import { readIdle } from './idle.js';
import { type Spreads, startSpreads } from './kernel-spreads.js';
import { readKernels } from './kernels.js';
import { readLaunches } from './launches.js';
import { readMemory } from './memory.js';
import { readOperators } from './operators.js';
import { readOverlap } from './overlap.js';
import { readPhases } from './phases.js';
import type { ScopeOptions, TraceScope } from './scope.js';
import { readShortKernels } from './short-kernels.js';
import { readTelemetry } from './telemetry.js';
import { readTimeline } from './timeline.js';
import { windowClocks } from './windows.js';
import { sessionIdentity } from '../session-identity.js';

/**
 * Analyzes a timeline (without a GPU: of operators): one rank and device of one capture and execution, never a sum over
 * several.
 * @throws E_USAGE if the session has no timeline, or none of the requested rank and device
 */
export async function analyzeTrace(
  session: Session,
  options: ScopeOptions = {},
): Promise<Document<TraceResult>> {
  const database = await session.connect();
  try {
    const { scope } = await timelineScope(session, database, options);
    const pending = await startSpreads(session, scope);
    try {
      return await analyzeScope(session, scope, pending.spreads);
    } finally {
      await pending.close();
    }
  } finally {
    await database.close();
  }
}

async function analyzeScope(
  session: Session,
  scope: TraceScope,
  loadSpreads: () => Promise<Spreads>,
): Promise<Document<TraceResult>> {
  const { manifest } = session;
  const clocks = await windowClocks(scope);
  const phases = await readPhases(scope, clocks);
  const utilization = await utilizationOfTrace(session, scope, clocks);
  const identity: TraceResult['session'] = sessionIdentity(session);
  // Computed before the spreads, which may still run on their own connection.
  const otherParts = {
    idle: await readIdle(scope),
    drift: await readDrift(scope),
    overlap: await readOverlap(scope),
    operators: await readOperators(scope, phases),
    short_kernels: await readShortKernels(scope),
    attribution: await readAttribution(scope, session.issues),
    timeline: await readTimeline(scope),
    telemetry: await readTelemetry(scope),
    memory: await readMemory(scope),
    environment: environmentFacts(manifest),
    utilization,
  };
  const spreads = await loadSpreads();
  const result: TraceResult = {
    session: identity,
    workload: manifest.workload,
    source: scope.source,
    devices: await readDevices(scope, manifest),
    phases,
    ...(await readKernels(scope, phases, spreads.launched)),
    classes: await readClasses(scope, phases),
    copies: await readCopies(scope),
    api_calls: spreads.calls,
    launches: await readLaunches(scope, phases, manifest.workload, spreads),
    ...otherParts,
  };
  const impossibleIssues = utilizationIssues(utilization?.stages ?? []);
  return document('trace', traceVersion, result, [
    ...session.issues,
    ...impossibleIssues,
    ...(await interruptedStepIssues(session, scope.database)),
  ]);
}
