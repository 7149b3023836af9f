import { stepKinds } from '../../model/record.js';
import type { PhaseKind } from '../../model/documents/trace-phase.js';
import { architectureIssues } from '../../llm/architecture-issues.js';
import { document, type Document, type Issue } from '../../model/document.js';
import {
  type Utilization,
  type UtilizationResult,
  type UtilizationStage,
  utilizationVersion,
} from '../../model/documents/utilization.js';
import { InferscopeError } from '../../model/errors.js';
import type { Figure, MissingFigure } from '../../model/figure.js';
import type { ManifestData, Workload } from '../../model/manifest.js';
import { firstSubject, hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { readStoredRoofline } from '../artifact.js';
import { readStoredGpuRoofline } from '../roofs.js';
import { timelineScope } from '../waterfall/ranks.js';
import { recordsRepeats, type TraceScope } from '../trace/scope.js';
import { windowClocks, type PhaseClock } from '../trace/windows.js';
import { type ExecutedGemms, readExecutedByStep } from './executed.js';
import { type SessionModel, sessionModel } from './model.js';
import { float32RanAs, type UtilizationRoofs, utilizationRoofs } from './roofs.js';
import type { StageContext } from './stage-context.js';
import { type RunSizes, type SizedStep, readTracedSteps, runSizesOf, withSizes } from './sizes.js';
import { callKinds, readRecordedSteps, type Step } from './steps.js';
import { stepGroups, stageOf, stepRows } from './groups.js';

/**
 * Figures of the stages that the program recorded (embedded engine, benchmark), without a profiler if an execution had
 * none; empty if no stage was timed.
 */
export async function readRecordedUtilization(
  session: Session,
  database: SessionDatabase,
): Promise<UtilizationStage[]> {
  const { manifest } = session;
  const sources = await readRecordSteps(database, manifest, runSizes(manifest.workload));
  if (sources.every(({ timed }) => timed.length === 0)) return [];
  const { roofs, model } = await readFacts(session, database, null);
  return stagesOf(database, sources, { roofs, model });
}

async function stagesOf(
  database: SessionDatabase,
  sources: readonly StepSource[],
  context: Pick<StageContext, 'roofs' | 'model'>,
): Promise<UtilizationStage[]> {
  const stages: UtilizationStage[] = [];
  for (const source of sources) {
    for (const group of stepGroups(source.timed)) {
      stages.push(await stageOf(database, group, { ...source, ...context }));
    }
  }
  return stages;
}

/** Steps for the times of stages, and traced steps for their operators. */
interface StepSource {
  executionId: string;
  timed: SizedStep[];
  timeFrom: string;
  profiled: boolean;
  traced: SizedStep[];
  executed: Map<number, ExecutedGemms> | null;
}

/** Recorded steps by kind and batch size, without a profiler if an execution had none, with roofs and model. */
export async function readRecordedStages(
  session: Session,
  database: SessionDatabase,
): Promise<
  { groups: { executionId: string; steps: SizedStep[] }[] } & Pick<StageContext, 'roofs' | 'model'>
> {
  const { manifest } = session;
  const sources = await readRecordSteps(database, manifest, runSizes(manifest.workload), callKinds);
  const { roofs, model } = await readFacts(session, database, null);
  const groups = sources.flatMap(({ executionId, timed }) =>
    stepGroups(timed, callKinds).map((steps) => ({ executionId, steps })),
  );
  return { groups, roofs, model };
}

/**
 * MFU and MBU of every stage and step of a session with stages and a model, from any source.
 * @throws E_USAGE if the session has neither prefill nor decode steps
 */
export async function analyzeUtilization(session: Session): Promise<Document<UtilizationResult>> {
  const sources = await utilizationOfSteps(session);
  if (sources === null) throw noStages(session.id);
  return sources;
}

/** As analyzeUtilization; null without such steps. */
export async function utilizationOfSteps(session: Session): Promise<Document<UtilizationResult> | null> {
  const { manifest } = session;
  const database = await session.connect();
  try {
    const sources: StepSource[] = [];
    let scope: TraceScope | null = null;
    // Measurements of inferscope have timed stages, which are preferred over a timeline.
    if (firstSubject(manifest, 'profile', 'bench', 'load', 'timeline') === 'timeline') {
      scope = (await timelineScope(session, database)).scope;
      const clocks = await windowClocks(scope);
      sources.push(...(await readTraceSteps(scope, clocks, runSizes(manifest.workload), true)));
    } else {
      sources.push(...(await readRecordSteps(database, manifest, runSizes(manifest.workload))));
    }
    if (sources.every(({ timed }) => timed.length === 0)) return null;
    const { modelAndDevice, roofs, model } = await readFacts(session, database, scope);
    const stages: UtilizationStage[] = [];
    const steps: UtilizationResult['steps'] = [];
    for (const source of sources) {
      for (const group of stepGroups(source.timed)) {
        const stage = await stageOf(database, group, { ...source, model, roofs });
        stages.push(stage);
        steps.push(stepRows(group, stage, model, roofs));
      }
    }
    const result: UtilizationResult = {
      session: { id: session.id, name: session.user.name, title: manifest.title },
      ...modelAndDevice,
      stages,
      steps,
    };
    return document('utilization', utilizationVersion, result, [
      ...('model' in model ? architectureIssues(model.model.architecture) : []),
      ...utilizationIssues(stages),
    ]);
  } finally {
    await database.close();
  }
}

/** As analyzeUtilization for an already analyzed timeline, for document `trace`; null without prefill and decode. */
export async function utilizationOfTrace(
  session: Session,
  scope: TraceScope,
  clocks: PhaseClock[],
): Promise<Utilization | null> {
  const { manifest } = session;
  const run = runSizes(manifest.workload);
  // Without a model there is nothing to compare operators with, so only times are reported.
  const sources = await readTraceSteps(scope, clocks, run, Boolean(manifest.workload?.model));
  if (sources.length === 0) return null;
  const { modelAndDevice, roofs, model } = await readFacts(session, scope.database, scope);
  return { ...modelAndDevice, stages: await stagesOf(scope.database, sources, { model, roofs }) };
}

async function readFacts(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope | null,
): Promise<{
  modelAndDevice: Pick<Utilization, 'model' | 'device'>;
  roofs: UtilizationRoofs;
  model: SessionModel | MissingFigure;
}> {
  const { manifest } = session;
  const rooflines = { cpu: await readStoredRoofline(session), gpu: await readStoredGpuRoofline(session) };
  const onCpu = scope ? !scope.source.gpu_used : manifest.workload?.device === 'cpu';
  const roofs = utilizationRoofs(manifest, rooflines, {
    onCpu,
    ...(scope && { ordinal: scope.source.focus.device, float32As: await float32RanAs(database) }),
  });
  const model = await sessionModel(database, manifest.workload);
  const known = 'model' in model;
  return {
    modelAndDevice: {
      model: known ? { name: model.name, dtype: model.dtype, from: model.from } : null,
      device: { name: roofs.name, kind: roofs.kind, devices: roofs.devices },
    },
    roofs,
    model,
  };
}

function runSizes(workload: Workload | null): RunSizes {
  const isShapeTyped =
    workload?.given_by_user?.some((part) => part === 'batch_size' || part === 'input_len') ?? false;
  return runSizesOf(workload, isShapeTyped ? 'the sizes given' : "the run's sizes");
}

/**
 * Stages use their time in the clean execution if it has them and the program waits for the device in every step, like
 * waterfalls. Otherwise they use the timeline's windows, which include profiler overhead.
 */
async function readTraceSteps(
  scope: TraceScope,
  clocks: PhaseClock[],
  run: RunSizes,
  withOperators: boolean,
): Promise<StepSource[]> {
  const { database, source } = scope;
  const sized = (step: Step) => withSizes(step, run);
  const traced = (await readTracedSteps(scope)).map(sized);
  const executed = withOperators ? await readExecutedByStep(database) : null;
  const deviceKinds = new Set(clocks.filter(({ clock }) => clock === 'device').map(({ kind }) => kind));
  const { timing, focus, attribution } = source;
  const recorded = timing
    ? await readRecordedSteps(database, timing.execution_id, {
        rank: focus.rank,
        toIterationEnd: recordsRepeats(source),
      })
    : [];
  const clean = recorded.filter(({ kind, by_device }) => by_device || !deviceKinds.has(kind)).map(sized);
  const cleanKinds = new Set(clean.map(({ kind }) => kind));
  const steps: StepSource[] = [
    {
      executionId: timing?.execution_id ?? '',
      timed: clean,
      timeFrom: `stages of the clean execution ${timing?.execution_id ?? ''}`,
      profiled: false,
      traced,
      executed,
    },
    {
      executionId: attribution.execution_id,
      timed: traced.filter(({ kind }) => !cleanKinds.has(kind)),
      timeFrom: `windows of ${attribution.tool}, profiler on${timing && deviceKinds.size > 0 ? ': the program runs ahead of the device, so host times of the clean execution are not meaningful' : ''}`,
      profiled: true,
      traced,
      executed,
    },
  ];
  return steps.filter(({ timed }) => timed.length > 0);
}

async function readRecordSteps(
  database: SessionDatabase,
  manifest: ManifestData,
  run: RunSizes,
  kinds: readonly PhaseKind[] = stepKinds,
): Promise<StepSource[]> {
  const { executions } = manifest;
  const measuredHere = hasSubject(manifest, 'profile', 'bench');
  const clean = executions.filter(({ purpose }) => purpose === 'clean');
  const sources: StepSource[] = [];
  for (const { execution_id, purpose } of clean.length > 0 ? clean : executions) {
    const profiled = purpose !== 'clean' && purpose !== 'imported';
    const steps = await readRecordedSteps(database, execution_id, {
      rank: 0,
      toIterationEnd: measuredHere,
      kinds,
    });
    sources.push({
      executionId: execution_id,
      timed: steps.map((step) => withSizes(step, run)),
      timeFrom: `stages of execution ${execution_id}${profiled ? ', profiler on' : ''}`,
      profiled,
      traced: [],
      executed: null,
    });
  }
  return sources;
}

const faultNames = { mfu: 'MFU', mbu: 'MBU', roof_share: 'share of the measured roof' } as const;

/** Issues for values over 100 %, which are shown unchanged. */
export function utilizationIssues(
  stages: readonly (Record<'mfu' | 'mbu', Figure> & {
    kind: string;
    roof_share?: Figure;
    executed?: { mfu: Figure };
  })[],
): Issue[] {
  return stages.flatMap((stage): Issue[] => {
    const over = (['mfu', 'mbu', 'roof_share'] as const).filter((name) => (stage[name]?.value ?? 0) > 1);
    if ((stage.executed?.mfu.value ?? 0) > 1 && !over.includes('mfu')) over.push('mfu');
    if (over.length === 0) return [];
    const names = over.map((name) => faultNames[name]).join(' and ');
    return [
      {
        code: 'over_the_roof',
        severity: 'warning',
        text: `${stage.kind}: ${names} over 100 % is impossible: model, dtype, sizes, peak (too low if measured on a busy machine) or time are not those of the run.`,
      },
    ];
  });
}

function noStages(id: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `session ${id} has no prefill and no decode step`,
    why: 'MFU and MBU need stages: NVTX ranges, record_function marks or a record.',
    fix: `To see its contents: inferscope session show ${id}`,
  });
}
