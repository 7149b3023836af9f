import { explainedBars } from '../../model/headline-time.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import type { MissingFigure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import type { WorkloadModel } from '../model-work.js';
import { gpuRoofs, type GpuRoofs, readStoredGpuRoofline } from '../roofs.js';
import { deviceOf } from '../device.js';
import { removeProfilerOverhead } from '../without-profiler.js';
import { cleanTimeOf, profiledOnly } from '../trace/clean-time.js';
import type { TraceScope } from '../trace/scope.js';
import { windowClocks } from '../trace/windows.js';
import { shapeOf } from '../utilization/groups.js';
import { sessionModel } from '../utilization/model.js';
import { float32RanAs } from '../utilization/roofs.js';
import { splitByCounters, constantsOf, countOf, noteOf, partsOf, type PartsByGroup } from './bar-facts.js';
import { waitShares, withWaits } from './communication-split.js';
import { barSql } from './bar-sql.js';
import { orderedIds } from './bar-order.js';
import { countedClasses, type CountedClasses } from './counter-parts.js';
import { type CopyNeed, needFields } from './group-needs.js';
import { groupSteps, sequencesOfGroup } from './group-steps.js';
import { type HostSplit, hostSplit, readCountedGaps, waitingParts } from './host-split.js';
import type { InnerGroup } from './inner-windows.js';
import { readLoadingNs } from './loading-code.js';
import { gpuPeaks, necessaryOf, peakLines, type NecessaryTime, type Peaks } from './necessary.js';
import { scaleToClean, type Part, splitOf } from './split.js';
import { stageGroups } from './stage-groups.js';
import { readLoadedBytes, type NeedFacts, needOf } from './stage-need.js';
import { unknownKernels } from './unknown-kernels.js';
import { type GroupSums, windowRows } from './window-rows.js';
import { describeBar } from './words.js';
import { peakTexts } from '../../vocabulary/peaks.js';

interface WaterfallFacts {
  model: WorkloadModel | MissingFigure;
  roofs: GpuRoofs;
}

export async function waterfallFacts(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope,
): Promise<WaterfallFacts> {
  const { manifest } = session;
  const model = await sessionModel(database, manifest.workload);
  const device = scope.source.focus.device;
  const roofs = gpuRoofs(deviceOf(manifest, device).name, await readStoredGpuRoofline(session), {
    index: device,
    devices: manifest.workload?.tensor_parallel_size ?? 1,
  });
  return { model: 'model' in model ? model.model : model, roofs };
}

/** The waterfalls of a timeline by kind and name of stage, and the reason for each missing one. */
export interface TimelineWaterfalls {
  stages: StageWaterfall[];
  withoutWaterfall: { stage: string; reason: string }[];
}

/**
 * The gap waterfall (docs/concepts/waterfall.md) of every kind of stage of a GPU timeline: decode, mixed, prefill,
 * loading, warm-up, sampling, a whole request, ranges named by the program, or the whole capture if nothing is marked.
 * Bars sum to the measured time. Uses the exclusive times that import computed.
 */
export async function timelineWaterfalls(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope,
  { clean = true }: { clean?: boolean } = {},
): Promise<TimelineWaterfalls> {
  if (!scope.source.gpu_used) return { stages: [], withoutWaterfall: [] };
  const { model, roofs } = await waterfallFacts(session, database, scope);
  const unmarked = (await windowClocks(scope)).some(({ kind }) => kind === 'outside');
  const { groups, withoutWaterfall } = await stageGroups(scope);
  const counted = await readCountedGaps(scope, unmarked);
  const host = await hostSplit(scope, unmarked, counted);
  const waits = await waitingParts(scope, unmarked, counted);
  const hasLoadingStages = groups.some(({ kind }) => kind === 'load' || kind === 'warmup');
  const loading = hasLoadingStages ? await readLoadingNs(scope) : new Map<number, number>();
  const peaks = await peaksUsed(scope, model, roofs);
  const counters = await countedClasses(session, scope, peaksOfModel(model, peaks));
  const sums = await windowRows(scope, {
    groups,
    framework: host.framework,
    loading,
    counted,
  });
  const unknown = await unknownKernels(scope, sums);
  const steps = await groupSteps(session, scope, groups);
  const copiedBytes = groups.some(({ kind }) => kind === 'load') ? await readLoadedBytes(scope) : 0;
  const shares = await waitShares(scope, new Set(groups.map(({ kind }) => kind)));
  const results: StageWaterfall[] = [];
  for (const groupSums of sums) {
    results.push(
      await waterfallOf(scope, groupSums, {
        model,
        roofs,
        peaks,
        steps,
        loadedBytes: copiedBytes / groupSums.instances,
        host,
        waits,
        unknown,
        counters,
        waitShares: shares,
        clean,
      }),
    );
  }
  return { stages: results, withoutWaterfall };
}

interface StageContext extends NeedFacts {
  /** False: bars are as recorded under the profiler. */
  clean: boolean;
  waitShares: Awaited<ReturnType<typeof waitShares>>;
  host: HostSplit;
  waits: PartsByGroup;
  unknown: PartsByGroup;
  counters: CountedClasses;
}

/** Peaks for the dtype that the model computes in. Counters do not show which kernel used which dtype. */
function peaksOfModel(model: WaterfallFacts['model'], peaks: Peaks) {
  const dtype = 'storage' in model ? model.storage.activations : 'float32';
  return { flops: peaks.flops(dtype).value, bandwidth: peaks.bandwidth.value };
}

/** Peaks of the model's dtypes. Float32 GEMMs that ran as TF32 use its peak, which is up to eight times that of float32. */
export async function peaksUsed(
  { database }: TraceScope,
  model: WaterfallFacts['model'],
  roofs: GpuRoofs,
): Promise<Peaks> {
  if (!('storage' in model) || model.storage.activations !== 'float32') return gpuPeaks(roofs);
  return gpuPeaks(roofs, await float32RanAs(database));
}

async function waterfallOf(
  scope: TraceScope,
  recordedSums: GroupSums,
  context: StageContext,
): Promise<StageWaterfall> {
  const { source } = scope;
  const { group, instances } = recordedSums;
  const clean = context.clean ? await cleanTimeOf(scope, group) : profiledOnly;
  const mean = scaleToClean(recordedSums.mean, clean.value);
  const sums = { ...recordedSums, mean };
  const necessary = needOf(sums, context);
  const need = 'reason' in necessary ? null : necessary;
  const { model, peaks } = context;
  const throttledShare =
    'storage' in model ? (peaks.throttledShare?.(model.storage.activations) ?? null) : null;
  const addedMs = clean.value === null ? 0 : mean.wallMs - clean.value;
  const split = context.waitShares.get(group.kind);
  const raw = withWaits(splitOf(mean, need), split);
  const recordedParts = withWaits(splitOf(recordedSums.mean, need), split);
  const parts = removeProfilerOverhead(raw, addedMs);
  const ids = orderedIds(parts);
  const msOf = (list: readonly Part[], id: string) => list.find((part) => part.id === id)?.ms ?? 0;
  const explainedMs = explainedBars(parts).ms;
  const bars = ids.map((id): WaterfallBar => {
    const ms = msOf(parts, id);
    return {
      id,
      ms,
      share: explainedMs > 0 ? ms / explainedMs : 0,
      count: countOf(id, sums),
      ...describeBar(id, { peaksMeasured: context.roofs.measured !== null, kind: group.kind }),
      sql: barSql(id, {
        group,
        instances,
        constants: constantsOf(id, {
          ms,
          rawMs: msOf(recordedParts, id),
          slowerMs: msOf(raw, id) - msOf(recordedParts, id),
          mean: recordedSums.mean,
        }),
      }),
      note: noteOf(id, ms, { sums, raw, parts, need, throttledShare }),
      parts: partsOf(id, { ...context, sums, ms }),
      ...splitByCounters(id, { counters: context.counters, key: group.key, mean, ms }),
    };
  });
  const total = bars.reduce((sum, { ms }) => sum + ms, 0);
  return {
    kind: group.kind,
    name: group.name,
    source: 'trace',
    execution_id: source.attribution.execution_id,
    point: null,
    instances,
    measured_ms: sums.measuredMs,
    median_ms: sums.medianMs,
    p10_ms: sums.p10Ms,
    clock: group.clock,
    clock_why: clockWhyOf(sums),
    clean_ms: clean,
    ...needFields(necessary),
    sequences: sequencesOfGroup(group, context.steps),
    roofs: roofLines(sums, need, context),
    bars,
    sum_error_share: mean.wallMs > 0 ? Math.abs(total - mean.wallMs) / mean.wallMs : 0,
    rows: rowsOf(recordedSums, context, clean.value, need),
    ranks: [{ rank: source.focus.rank, device: source.focus.device, measured_ms: recordedSums.mean.wallMs }],
  };
}

function clockWhyOf({ group, instances }: GroupSums): string {
  const total = 'total' in group ? (group as InnerGroup).total : instances;
  return total > instances
    ? `${group.clockWhy}; the first ${instances} of ${total} instances`
    : group.clockWhy;
}

function roofLines(
  { group }: GroupSums,
  need: NecessaryTime | CopyNeed | null,
  { model, peaks, steps }: StageContext,
): string[] {
  if (need === null) return [];
  if ('link' in need) return peakTexts(need.link.value === null ? [] : [['host link', need.link]]);
  if ('reason' in model) return [];
  const kindSteps =
    group.kind === 'warmup'
      ? steps.warmup
      : group.kind === 'request'
        ? steps.requests
        : steps.steps.filter(({ kind }) => kind === group.kind);
  const shape = kindSteps[0] ? shapeOf(kindSteps[0]) : null;
  if (shape && 'phase' in shape) return peakLines(model, shape, peaks);
  const { bandwidth } = peaks;
  return peakTexts(bandwidth.value === null ? [] : [['bandwidth', bandwidth]]);
}

/** Bars of the first instances, each with its share of the mean's difference to the clean time. */
function rowsOf(
  { group, rows, mean }: GroupSums,
  { model, peaks, steps, waitShares: shares }: StageContext,
  cleanMs: number | null,
  meanNeed: NecessaryTime | CopyNeed | null,
): StageWaterfall['rows'] {
  const byStage = new Map(
    steps.steps.filter(({ kind }) => kind === group.kind).map((step) => [step.stage_id, step]),
  );
  return rows.map(({ stage_id, label, measured }) => {
    const step = byStage.get(stage_id);
    const shape = step ? shapeOf(step) : null;
    // Instances with several steps are compared with the necessary time of the mean instance.
    const need =
      meanNeed && shape && 'phase' in shape && 'architecture' in model
        ? necessaryOf(model, shape, peaks)
        : meanNeed;
    const instanceCleanMs =
      cleanMs === null || mean.wallMs === 0 ? null : (cleanMs * measured.wallMs) / mean.wallMs;
    const instance = scaleToClean(measured, instanceCleanMs);
    const parts = withWaits(
      splitOf(instance, need && !('reason' in need) ? need : null),
      shares.get(group.kind),
    );
    const added = instanceCleanMs === null ? 0 : instance.wallMs - instanceCleanMs;
    const bars = removeProfilerOverhead(parts, added);
    const ids = orderedIds(bars);
    return {
      stage_id,
      label,
      measured_ms: measured.wallMs,
      bars: ids.map((id) => ({ id, ms: bars.find((bar) => bar.id === id)!.ms })),
    };
  });
}
