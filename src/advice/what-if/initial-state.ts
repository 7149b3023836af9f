import { stepKinds } from '../../model/record.js';
import { betweenCalls, classOfBar } from '../../model/bars.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { explainedBars } from '../../model/headline-time.js';
import { missing, type MissingFigure } from '../../model/figure.js';
import type { StageShape } from '../../llm/shape.js';
import type { Session } from '../../session/open.js';
import { readStoredRoofline } from '../../facts/artifact.js';
import { onCpu } from '../../facts/bench/machine.js';
import { deviceOf } from '../../facts/device.js';
import type { FindingContext } from '../findings/rule.js';
import { stageFacts } from '../findings/stage-facts.js';
import { decoderModel, type WorkloadModel } from '../../facts/model-work.js';
import { roofsOfCpu } from '../../facts/predict/device-roofs.js';
import { gpuRoofs, readStoredGpuRoofline } from '../../facts/roofs.js';
import type { TraceScope } from '../../facts/trace/scope.js';
import { workingSetBytes } from '../../facts/utilization/stage.js';
import { gpuPeaks, type Peaks } from '../../facts/waterfall/necessary.js';
import { peaksUsed, waterfallFacts } from '../../facts/waterfall/waterfall.js';
import { noKernelTimes } from './class-times.js';
import { launchIdleMs } from './launch-changes.js';
import { plannedShape, tracedShapes } from './stage-needs.js';
import { jobState } from './rank-changes.js';
import {
  type ComputedGain,
  type JobState,
  waitsForHost,
  type StageNeeds,
  type StageState,
} from './stage-state.js';

/** Every stage of a session as measured, with all inputs of the changes. */
export async function initialStates(
  session: Session,
  context: FindingContext,
  findings: readonly ComputedGain[],
): Promise<StageState[]> {
  const stages = context.waterfalls.filter(
    ({ kind, measured_ms: time }) => changeableKinds.has(kind) && time.value !== null,
  );
  return context.scope
    ? statesOfTrace(session, context, context.scope, stages, findings)
    : plannedStates(session, stages, findings);
}

/** Kinds of stages that changes are predicted for. */
export const changeableKinds: ReadonlySet<string> = new Set([...stepKinds, 'training', 'outside']);

async function statesOfTrace(
  session: Session,
  context: FindingContext,
  scope: TraceScope,
  stages: readonly StageWaterfall[],
  findings: readonly ComputedGain[],
): Promise<StageState[]> {
  const facts = await stageFacts(context);
  const { model, roofs } = await waterfallFacts(session, context.database, scope);
  const peaks = await peaksUsed(scope, model, roofs);
  const shapes = await tracedShapes(session, scope);
  const bytesByKind = await copiedBytes(scope);
  const jobs = new Map<string, JobState | null>();
  for (const fact of facts) jobs.set(fact.kind, await jobState(context, fact));
  return stages.map((waterfall) => {
    const stageFact = facts.find(({ kind }) => kind === waterfall.kind) ?? null;
    const shape =
      shapes.get(waterfall.kind) ?? missing('no_stage', 'the stage is not marked, so its work is not known');
    const state = stateOf(waterfall, findings, needsOf(model, shape, peaks));
    const capturedHostMs = stageFact?.captured_host_ms ?? null;
    const added = Math.max(0, explainedBars(waterfall.bars).profiler?.ms ?? 0);
    return withLaunches({
      ...state,
      facts: stageFact,
      kernels: stageFact?.kernels ?? null,
      launches: stageFact?.launches ?? null,
      copiedBytes: (bytesByKind.get(waterfall.kind) ?? 0) / waterfall.instances,
      hostMs:
        stageFact?.own_host_ms ?? (capturedHostMs === null ? null : Math.max(0, capturedHostMs - added)),
      job: jobs.get(waterfall.kind) ?? null,
      nodeNs: roofs.graphNodeNs.value,
      gpuName: roofs.name,
    });
  });
}

/** Bytes from the host to the device by kind of stage, over all its instances. */
async function copiedBytes({ database }: TraceScope): Promise<Map<string, number>> {
  const rows = await database.query<{ phase: string; bytes: number }>(
    `SELECT step_kind AS phase, sum(bytes)::DOUBLE AS bytes FROM phase_copies WHERE kind = 'HtoD' AND step_kind IS NOT NULL GROUP BY step_kind`,
  );
  return new Map(rows.map(({ phase, bytes }) => [phase, bytes]));
}

/** Stages with planned sizes: those of the embedded engine and of benchmarks. */
export async function plannedStates(
  session: Session,
  stages: readonly StageWaterfall[],
  findings: readonly ComputedGain[],
): Promise<StageState[]> {
  const { manifest } = session;
  const { workload } = manifest;
  if (!workload || stages.length === 0) return [];
  const cpu = onCpu(workload);
  const roofline = cpu ? await readStoredRoofline(session) : null;
  const recorded = workload.engine.options['gpu'];
  const name = typeof recorded === 'string' ? recorded : deviceOf(manifest, null).name;
  const roofs = cpu
    ? null
    : gpuRoofs(name, await readStoredGpuRoofline(session), { devices: workload.tensor_parallel_size });
  const model = decoderModel(workload);
  const cpuRoofs = roofline && roofsOfCpu(roofline);
  const peaksFor = (shape: StageShape | MissingFigure): Peaks | MissingFigure => {
    if (roofs) return gpuPeaks(roofs);
    if (!cpuRoofs) return missing('no_roofline', 'the session has no measured roofline');
    if ('reason' in model) return model;
    if ('reason' in shape) return shape;
    // The cache level that holds data read by consecutive stages.
    const set = workingSetBytes(model, shape.batchSize, shape.contextTokens + shape.newTokens);
    return { flops: cpuRoofs.peak, bandwidth: cpuRoofs.bandwidth(set), level: cpuRoofs.bandwidthLevel(set) };
  };
  return stages.map((waterfall) => {
    const shape = plannedShape(waterfall, workload);
    const peaks = peaksFor(shape);
    // Sizes would not help without kernels.
    const needs =
      'reason' in shape && !waterfall.bars.some(({ id }) => classOfBar(id) !== null)
        ? noKernelTimes
        : 'reason' in peaks
          ? peaks
          : needsOf(model, shape, peaks);
    const state = stateOf(waterfall, findings, needs);
    const bench = waterfall.source === 'bench';
    return withLaunches({
      ...state,
      // Host work between two calls stays, however they launch.
      idleBars:
        bench && !cpu
          ? new Set([...[...state.idleBars].filter((id) => !betweenCalls.includes(id)), 'unattributed'])
          : new Set(),
      kernels: waterfall.bars.find(({ id }) => classOfBar(id) === 'kernels')?.count ?? null,
      nodeNs: roofs?.graphNodeNs.value ?? null,
      gpuName: roofs?.name ?? null,
      onCpu: cpu,
      weightStreams: roofline?.weight_streams ?? [],
    });
  });
}

const needsOf = (
  model: WorkloadModel | MissingFigure,
  shape: StageShape | MissingFigure,
  peaks: Peaks,
): StageNeeds | MissingFigure =>
  'reason' in model ? model : 'reason' in shape ? shape : { model, shape, peaks };

function stateOf(
  waterfall: StageWaterfall,
  findings: readonly ComputedGain[],
  needs: StageNeeds | MissingFigure,
): StageState {
  const { bars } = explainedBars(waterfall.bars);
  const counts = bars.flatMap(({ id, count }): [string, number][] => {
    return count === null ? [] : [[classOfBar(id) ?? id, count]];
  });
  return {
    waterfall,
    bars: new Map(bars.map(({ id, ms }) => [id, ms])),
    kernelCounts: new Map(counts),
    // If the waterfall does not use the model's arithmetic, changes do not use it either.
    needs: waterfall.roofline_ms.value === null ? waterfall.roofline_ms : needs,
    idleBars: new Set(bars.map(({ id }) => id).filter(waitsForHost)),
    kernels: null,
    launches: null,
    copiedBytes: null,
    facts: null,
    hostMs: null,
    launchIdleMs: 0,
    nodeNs: null,
    findings,
    job: null,
    gpuName: null,
    onCpu: false,
    weightStreams: [],
  };
}

const withLaunches = (state: StageState): StageState => ({ ...state, launchIdleMs: launchIdleMs(state) });
