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
import { byCounters, constantsOf, countOf, noteOf, partsOf, type Waits } from './bar-facts.js';
import { barSql } from './bar-sql.js';
import { orderedIds } from './bar-order.js';
import { countedClasses, type CountedClasses } from './counter-parts.js';
import { type HostSplit, hostSplit, toldOf, waitingParts } from './host-split.js';
import { gpuPeaks, meanNecessary, necessaryOf, peakLines, type Necessary, type Peaks } from './necessary.js';
import { type Part, splitOf, withoutProfiler } from './split.js';
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
  const peaks = await peaksUsed(scope, model, roofs);
  const results: StageWaterfall[] = [];
  for (const sums of kinds) {
    const own = steps.filter(({ kind }) => kind === sums.kind);
    results.push(
      await waterfallOf(scope, sums, {
        clocks: known,
        model,
        roofs,
        peaks,
        steps: own,
        host,
        waits,
        counted,
      }),
    );
  }
  return results;
}

const runsSizes = "the run's sizes";

async function sizedSteps({ manifest }: Session, scope: TraceScope): Promise<SizedStep[]> {
  const { workload } = manifest;
  const run = {
    batch_size: workload?.batch_size ?? null,
    input_len: workload?.input_len ?? null,
    from: runsSizes,
  };
  const shapes = await operatorSizes(scope.database);
  return (await tracedSteps(scope)).map((step) => withSizes(step, shapes.get(step.stage_id), run));
}

interface StageContext extends WaterfallFacts {
  peaks: Peaks;
  clocks: readonly PhaseClock[];
  steps: readonly SizedStep[];
  host: HostSplit;
  waits: Waits;
  counted: CountedClasses;
}

/** Of the dtype the model computes in: counters do not tell which of its kernels computed in which. */
function peaksOfModel(model: WaterfallFacts['model'], roofs: GpuRoofs) {
  const dtype = 'storage' in model ? model.storage.activations : 'float32';
  return { flops: roofs.roofFlops(dtype).value, bandwidth: roofs.roofBandwidth.value };
}

/** Products of float32 that ran as TF32 have its peak: float32's own they would exceed eightfold. */
export async function peaksUsed(
  { database }: TraceScope,
  model: WaterfallFacts['model'],
  roofs: GpuRoofs,
): Promise<Peaks> {
  const peaks = gpuPeaks(roofs);
  if (!('storage' in model) || model.storage.activations !== 'float32') return peaks;
  const [gemm] = await database.query<{ share: number | null }>(
    `SELECT sum(dur_ns) FILTER (dtype = 'tf32' OR contains(name, 'tf32')) / sum(dur_ns) AS share FROM own_kernels WHERE class = 'gemm'`,
  );
  if ((gemm?.share ?? 0) < 0.5) return peaks;
  return {
    ...peaks,
    flops: (dtype) => roofs.roofFlops(dtype === 'float32' ? 'tfloat32' : dtype),
  };
}

async function waterfallOf(
  scope: TraceScope,
  sums: KindSums,
  context: StageContext,
): Promise<StageWaterfall> {
  const { source } = scope;
  const { kind, instances, mean } = sums;
  const clock = context.clocks.find((one) => one.kind === kind);
  const necessary = necessaryOfStage(context, mean.wallMs);
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
        ? peakLines(context.model, shape, context.peaks)
        : [],
    bars,
    sum_error_share: mean.wallMs > 0 ? Math.abs(total - mean.wallMs) / mean.wallMs : 0,
    rows: rowsOf(sums, context, addedMs, need !== null),
    ranks: [{ rank: source.focus.rank, device: source.focus.device, measured_ms: mean.wallMs }],
  };
}

/** Of the run's sizes, which stages need not share, a roofline this much above W says that they do not. */
const impossible = 1.1;

function necessaryOfStage({ model, peaks, steps }: StageContext, wallMs: number): Necessary | MissingFigure {
  if ('reason' in model) return model;
  if (steps.length === 0) {
    return missing('no_stage', 'nothing marks the stage, so that its work is not known');
  }
  const found = meanNecessary(steps, model, peaks);
  const assumed = steps.some(({ from }) => from.includes(runsSizes));
  if (!('reason' in found) && assumed && found.rooflineMs > impossible * wallMs) {
    return missing(
      'impossible_sizes',
      `by ${runsSizes} it would need ${found.rooflineMs.toPrecision(3)} ms at least, more than was measured: the stage's own sizes are not told`,
    );
  }
  return found;
}

/** The first instances by the same ids; of each the profiler's share is taken as of the mean. */
function rowsOf(
  { rows, mean }: KindSums,
  { model, peaks, steps }: StageContext,
  addedMs: number,
  known: boolean,
): StageWaterfall['rows'] {
  const byStage = new Map(steps.map((step) => [step.stage_id, step]));
  return rows.map(({ stage_id, label, measured }) => {
    const step = byStage.get(stage_id);
    const shape = step ? shapeOf(step) : null;
    const need =
      known && 'architecture' in model && shape && 'phase' in shape ? necessaryOf(model, shape, peaks) : null;
    const parts = splitOf(measured, need && !('reason' in need) ? need : null);
    const added = mean.wallMs > 0 ? (addedMs * measured.wallMs) / mean.wallMs : 0;
    const bars = withoutProfiler(parts, added);
    const ids = orderedIds(bars);
    return {
      stage_id,
      label,
      measured_ms: measured.wallMs,
      bars: ids.map((id) => ({ id, ms: bars.find((one) => one.id === id)!.ms })),
    };
  });
}
