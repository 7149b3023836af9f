import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import { figure, missing, type MissingFigure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import type { WorkloadModel } from '../model-work.js';
import { gpuRoofs, type GpuRoofs, storedGpuRoofline } from '../roofs.js';
import { deviceOf } from '../device.js';
import { cleanTime } from '../trace/phases.js';
import type { TraceScope } from '../trace/scope.js';
import { makeWindows, type PhaseClock } from '../trace/windows.js';
import { type SizedStep, shapeOf } from '../utilization/groups.js';
import { sessionModel } from '../utilization/model.js';
import { operatorSizes, tracedSteps, withSizes } from '../utilization/sizes.js';
import { barSql } from './bar-sql.js';
import { orderedIds } from './bar-order.js';
import {
  countedClasses,
  type CountedClasses,
  countedKey,
  coveredShare,
  inefficiencyParts,
} from './counter-parts.js';
import { type HostSplit, hostSplit, toldOf, waitingParts } from './host-split.js';
import { gpuPeaks, meanNecessary, necessaryOf, peakLines, type Necessary } from './necessary.js';
import { type Measured, type Part, splitOf, withoutProfiler } from './split.js';
import { type KindSums, windowRows } from './window-rows.js';
import { makeWindowSums } from './window-sums.js';
import { barWords } from './words.js';

/** What necessary times rest on. */
export interface WaterfallFacts {
  model: WorkloadModel | MissingFigure;
  roofs: GpuRoofs;
}

/** Model and roofs of a session, for its focus. */
export async function waterfallFacts(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope,
): Promise<WaterfallFacts> {
  const { manifest } = session;
  const model = await sessionModel(database, manifest.workload, {});
  const device = scope.source.focus.device;
  const roofs = gpuRoofs(deviceOf(manifest, device).name, await storedGpuRoofline(session), {
    index: device,
    devices: manifest.workload?.tensor_parallel_size ?? 1,
  });
  return { model: 'model' in model ? model.model : model, roofs };
}

/**
 * The gap waterfall (docs/measurement.md) of every kind of stage of a GPU timeline: decode, mixed, prefill, or the whole
 * capture where nothing is marked. Bars sum to W. Sums over what import swept; needs the views of traceScope.
 * @param clocks of makeWindows; made here where they are left out
 */
export async function stageWaterfalls(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope,
  { clocks, facts }: { clocks?: readonly PhaseClock[]; facts?: WaterfallFacts } = {},
): Promise<StageWaterfall[]> {
  if (!scope.source.gpu_used) return [];
  const known = clocks ?? (await makeWindows(scope));
  const { model, roofs } = facts ?? (await waterfallFacts(session, database, scope));
  const unmarked = known.some(({ kind }) => kind === 'outside');
  await makeWindowSums(scope, known);
  const told = await toldOf(scope, unmarked);
  const host = await hostSplit(scope, unmarked, told);
  const waits = await waitingParts(scope, unmarked, told);
  const steps = unmarked ? [] : await sizedSteps(session, scope);
  const counted = await countedClasses(session, database, unmarked, peaksOfModel(model, roofs));
  const kinds = await windowRows(database, unmarked, host.framework, told);
  const results: StageWaterfall[] = [];
  for (const sums of kinds) {
    const own = steps.filter(({ kind }) => kind === sums.kind);
    results.push(
      await waterfallOf(scope, sums, { clocks: known, model, roofs, steps: own, host, waits, counted }),
    );
  }
  return results;
}

async function sizedSteps({ manifest }: Session, scope: TraceScope): Promise<SizedStep[]> {
  const { workload } = manifest;
  const run = {
    batch_size: workload?.batch_size ?? null,
    input_len: workload?.input_len ?? null,
    from: "the run's sizes",
  };
  const shapes = await operatorSizes(scope.database);
  return (await tracedSteps(scope)).map((step) => withSizes(step, shapes.get(step.stage_id), run));
}

interface StageContext extends WaterfallFacts {
  clocks: readonly PhaseClock[];
  steps: readonly SizedStep[];
  host: HostSplit;
  waits: Map<StageWaterfall['kind'], WaterfallBar['parts']>;
  counted: CountedClasses;
}

/** Of the dtype the model computes in: counters do not tell which of its kernels computed in which. */
function peaksOfModel(model: WaterfallFacts['model'], roofs: GpuRoofs) {
  const dtype = 'storage' in model ? model.storage.activations : 'float32';
  return { flops: roofs.roofFlops(dtype).value, bandwidth: roofs.roofBandwidth.value };
}

async function waterfallOf(
  scope: TraceScope,
  sums: KindSums,
  context: StageContext,
): Promise<StageWaterfall> {
  const { source } = scope;
  const { kind, instances, mean } = sums;
  const clock = context.clocks.find((one) => one.kind === kind);
  const necessary = necessaryOfStage(context);
  const need = 'reason' in necessary ? null : necessary;
  const clean =
    clock?.clock === 'device' && source.timing
      ? missing(
          'runs_ahead',
          'the program runs ahead of the device: host times of the clean execution say nothing',
        )
      : await cleanTime(scope, kind);
  const addedMs = clean.value === null ? 0 : mean.wallMs - clean.value;
  const raw = splitOf(mean, need);
  const parts = withoutProfiler(raw, addedMs);
  const ids = orderedIds(parts);
  const msOf = (list: readonly Part[], id: string) => list.find((one) => one.id === id)?.ms ?? 0;
  const bars = ids.map((id): WaterfallBar => {
    const ms = msOf(parts, id);
    return {
      id,
      ms,
      share: mean.wallMs > 0 ? ms / mean.wallMs : 0,
      count: countOf(id, sums),
      ...barWords(id, { peaksMeasured: context.roofs.measured !== null }),
      sql: barSql(id, {
        source,
        clocks: context.clocks,
        kind,
        instances,
        constants: constantsOf(id, { ms, rawMs: msOf(raw, id), mean, sums }),
      }),
      note: noteOf(id, ms, { mean, addedMs, parts }),
      parts: partsOf(id, { host: context.host, waits: context.waits, sums, ms }),
      ...byCounters(id, { counted: context.counted, kind, mean, ms }),
    };
  });
  const total = bars.reduce((sum, { ms }) => sum + ms, 0);
  const shape = context.steps[0] ? shapeOf(context.steps[0]) : null;
  return {
    kind,
    source: 'trace',
    execution_id: source.attribution.execution_id,
    point: null,
    instances,
    measured_ms: sums.measuredMs,
    median_ms: sums.medianMs,
    clock: clock?.clock ?? 'host',
    clock_why: clock?.why ?? '',
    clean_ms: clean,
    roofline_ms: need
      ? figure(need.rooflineMs, 'ms', `max(Σ FLOPs / peak, Σ bytes / bandwidth): ${need.bound}-bound`)
      : (necessary as MissingFigure),
    roofs:
      need && 'architecture' in context.model && shape && 'phase' in shape
        ? peakLines(context.model, shape, gpuPeaks(context.roofs))
        : [],
    bars,
    sum_error_share: mean.wallMs > 0 ? Math.abs(total - mean.wallMs) / mean.wallMs : 0,
    rows: rowsOf(sums, context, addedMs),
    ranks: [{ rank: source.focus.rank, device: source.focus.device, measured_ms: mean.wallMs }],
  };
}

function necessaryOfStage({ model, roofs, steps }: StageContext): Necessary | MissingFigure {
  if ('reason' in model) return model;
  if (steps.length === 0) {
    return missing('no_stage', 'nothing marks the stage, so that its work is not known');
  }
  return meanNecessary(steps, model, gpuPeaks(roofs));
}

/** The first instances by the same ids; of each the profiler's share is taken as of the mean. */
function rowsOf(
  { rows, mean }: KindSums,
  { model, roofs, steps }: StageContext,
  addedMs: number,
): StageWaterfall['rows'] {
  const peaks = gpuPeaks(roofs);
  const byStage = new Map(steps.map((step) => [step.stage_id, step]));
  return rows.map(({ stage_id, label, measured }) => {
    const step = byStage.get(stage_id);
    const shape = step ? shapeOf(step) : null;
    const need =
      'architecture' in model && shape && 'phase' in shape ? necessaryOf(model, shape, peaks) : null;
    const parts = splitOf(measured, need && !('reason' in need) ? need : null);
    const added = mean.wallMs > 0 ? (addedMs * measured.wallMs) / mean.wallMs : 0;
    const bars = withoutProfiler(parts, added);
    const known = orderedIds(bars);
    return {
      stage_id,
      label,
      measured_ms: measured.wallMs,
      bars: known.map((id) => ({ id, ms: bars.find((one) => one.id === id)!.ms })),
    };
  });
}

function countOf(id: string, { counts }: KindSums): number | null {
  const [head = '', tail = ''] = id.split('.');
  if (['inefficiency', 'nonessential', 'kernels'].includes(head)) return counts.get(`class.${tail}`) ?? 0;
  if (head === 'exposed_comm') return counts.get('class.communication') ?? 0;
  if (['program', 'between_operators', 'framework'].includes(tail)) return counts.get('host') ?? null;
  return counts.get(id) ?? null;
}

/** Rows of a bar's query that are arithmetic: what it has beyond or below the rows that were recorded. */
function constantsOf(
  id: string,
  { ms, rawMs, mean }: { ms: number; rawMs: number; mean: Measured; sums: KindSums },
): { label: string; ms: number }[] {
  const [head = '', tail = ''] = id.split('.');
  const found: { label: string; ms: number }[] = [];
  const add = (label: string, value: number) => {
    if (Math.abs(value) > 1e-9) found.push({ label, ms: value });
  };
  if (head === 'inefficiency' || head === 'nonessential') {
    const measured = (mean.classes as Map<string, number>).get(tail) ?? 0;
    add('(necessary time, model arithmetic)', rawMs - measured);
  }
  if (head === 'unattributed') add('(not covered by intervals)', rawMs - mean.idle.unattributed);
  add('(taken out: added by the profiler)', ms - rawMs);
  return found;
}

function noteOf(
  id: string,
  ms: number,
  { mean, addedMs, parts }: { mean: Measured; addedMs: number; parts: readonly Part[] },
): string | null {
  const [head = '', tail = ''] = id.split('.');
  if (id === 'roofline') return 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage';
  if (id === 'serial') {
    return 'Σ over operations of max(FLOPs / peak, bytes / bandwidth), less the roofline: the price of one operation after another';
  }
  if (id === 'profiler_overhead') {
    const rest = addedMs - ms;
    const more =
      rest > 1e-6
        ? `; ${rest.toFixed(3)} ms more are slower than in the clean execution, but in no bar of the host`
        : '';
    return `mean under the profiler less mean of the clean execution; taken out of host and launch first${more}`;
  }
  if (ms >= 0) return null;
  if (head === 'inefficiency') {
    const measured = (mean.classes as Map<string, number>).get(tail) ?? 0;
    if (measured === 0)
      return 'no kernel of this class was seen: its work is in kernels of other classes (fused)';
    return 'faster than its necessary time: bytes came from the cache, or model, dtype, sizes or peaks are not those of what ran';
  }
  if (head === 'unattributed') {
    const total = parts.reduce((sum, part) => sum + part.ms, 0);
    return `activities that the window's edges cut count in proportion, ${Math.abs(ms).toFixed(4)} of ${total.toFixed(3)} ms too much`;
  }
  if (head === 'serial') return 'operations need less one by one than together: an assumption is wrong';
  return 'less than nothing: an assumption is wrong';
}

/** An inefficiency split by the hardware's counters; trusted, and nothing to sharpen, where most of the class was counted. */
function byCounters(
  id: string,
  {
    counted,
    kind,
    mean,
    ms,
  }: Pick<StageContext, 'counted'> & Pick<KindSums, 'kind' | 'mean'> & { ms: number },
): Partial<Pick<WaterfallBar, 'parts' | 'confidence' | 'confidence_why' | 'sharpen'>> {
  const [head = '', tail = ''] = id.split('.');
  const own = counted.get(countedKey(kind, tail));
  const classMs = (mean.classes as Map<string, number>).get(tail) ?? 0;
  if (head !== 'inefficiency' || !own || !(ms > 0)) return {};
  const parts = inefficiencyParts(own, classMs, classMs - ms);
  const share = classMs > 0 ? own.ms / classMs : 0;
  if (share < coveredShare) return { parts };
  return {
    parts,
    confidence: 'high',
    confidence_why: `counters of ncu for ${Math.round(100 * Math.min(1, share))} % of its time`,
    sharpen: null,
  };
}

function partsOf(
  id: string,
  { host, waits, sums, ms }: Pick<StageContext, 'host' | 'waits'> & { sums: KindSums; ms: number },
): WaterfallBar['parts'] {
  if (ms <= 0) return [];
  if (id === 'synchronization') return waits.get(sums.kind) ?? [];
  if (id === 'host.framework') return host.insideParts.get(sums.kind) ?? [];
  const split = host.framework === null ? 'host.program' : 'host.between_operators';
  return id === split ? (host.parts.get(sums.kind) ?? []) : [];
}
