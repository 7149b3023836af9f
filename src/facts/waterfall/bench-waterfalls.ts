import { knownEngine } from '../../llm/memory-request.js';
import { classOfBar, isHostBar } from '../../model/bars.js';
import type { BenchPointResult, BenchVariant } from '../../model/documents/bench.js';
import type { StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import type { Figure, MissingFigure } from '../../model/figure.js';
import type { StageShape } from '../../llm/shape.js';
import type { Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import { readStoredRoofline } from '../artifact.js';
import { analyzeBench } from '../bench/bench.js';
import { stageLabels } from '../../vocabulary/stages.js';
import { meanOf } from '../bench/point.js';
import { onCpu } from '../bench/machine.js';
import { roofsOf, usesGraphs } from '../bench/roof.js';
import { deviceOf } from '../device.js';
import { decoderModel, type WorkloadModel } from '../model-work.js';
import { gpuRoofs, readStoredGpuRoofline } from '../roofs.js';
import { literal } from '../trace/scope.js';
import type { UtilizationRoofs } from '../utilization/roofs.js';
import { workingSetBytes } from '../utilization/stage.js';
import { orderedIds } from './bar-order.js';
import { hostKey, hostSql, type StageHost, readStageHosts } from './bench-host.js';
import { benchParts } from './bench-parts.js';
import { composedStage, readLoadStage, readRepeats } from './composed-stages.js';
import { needFields } from './group-needs.js';
import { necessaryOf, type NecessaryTime, peakLines, type Peaks } from './necessary.js';
import type { Part } from './split.js';
import { describeBar } from './words.js';

interface Facts {
  workload: Workload;
  model: WorkloadModel | MissingFigure;
  roofs: UtilizationRoofs | MissingFigure;
}

/** Bars that another capture would not make more precise. */
const exactBars = new Set(['roofline', 'serial', 'host.loop', 'host.sampling']);

/**
 * Waterfalls of a benchmark's points: roofline, kernel time above it if the engine profiled its device, host time from
 * time stamps, device events and samples. The remaining time is unattributed: a benchmark does not record its cause.
 */
export async function benchWaterfalls(session: Session): Promise<StageWaterfall[]> {
  const { workload, hardware } = session.manifest;
  const { data } = await analyzeBench(session);
  if (!workload) return [];
  const rooflines = { cpu: await readStoredRoofline(session), gpu: await readStoredGpuRoofline(session) };
  const facts = {
    workload,
    model: decoderModel(workload),
    roofs: roofsOf({ workload, hardware }, rooflines),
  };
  const database = await session.connect();
  try {
    const waterfalls: StageWaterfall[] = [];
    for (const variant of data.variants) {
      const hosts = await readStageHosts(database, variant.execution_id);
      // Stages of several variants at one point differ only in the variant.
      const withVariantName = (stage: StageWaterfall): StageWaterfall =>
        data.variants.length === 1
          ? stage
          : { ...stage, name: `${stageLabels[stage.kind] ?? stage.kind} with ${variant.label}` };
      for (const point of variant.points.filter(({ outcome }) => outcome === 'measured')) {
        const pointStages = (['decode', 'prefill'] as const).flatMap((kind) => {
          const host = hosts.get(hostKey(point.point, kind)) ?? null;
          return waterfallOf(kind, variant, point, { ...facts, host, nodeNs: nodeNsOf(variant) }) ?? [];
        });
        waterfalls.push(...pointStages.map(withVariantName));
        const request = await requestOf(variant, point, pointStages);
        if (request) waterfalls.push(withVariantName(request));
      }
      const load = await readLoadStage(database, variant.execution_id, 'bench');
      if (load) waterfalls.push(withVariantName(load));
    }
    return waterfalls;
  } finally {
    await database.close();
  }

  /** The stage of a whole request; null if its prefill or decode was not timed. */
  async function requestOf(
    { execution_id }: BenchVariant,
    { point, output_len }: BenchPointResult,
    pointStages: readonly StageWaterfall[],
  ): Promise<StageWaterfall | null> {
    const [prefill, decode] = (['prefill', 'decode'] as const).map((kind) =>
      pointStages.find((stage) => stage.kind === kind),
    );
    if (!prefill || (!decode && output_len > 1)) return null;
    const repeats = await readRepeats(database, { executionId: execution_id, point, warmup: false });
    return repeats && composedStage('request', repeats, { prefill, decode: decode ?? null });
  }

  function nodeNsOf({ engine_args }: BenchVariant): number | null {
    if (!workload || !usesGraphs(workload, engine_args)) return null;
    const { name } = deviceOf(session.manifest, null);
    return gpuRoofs(name, rooflines.gpu).graphNodeNs.value;
  }
}

function waterfallOf(
  kind: 'decode' | 'prefill',
  { execution_id }: BenchVariant,
  point: BenchPointResult,
  {
    model,
    roofs,
    workload,
    host: stageHost,
    nodeNs,
  }: Facts & { host: StageHost | null; nodeNs: number | null },
): StageWaterfall | null {
  const { latency, device_work: work } = point;
  const steps = 'p50' in latency.itl_ms ? latency.itl_ms : latency.tpot_ms;
  const time = meanOf(kind === 'decode' ? steps : latency.ttft_ms);
  if (time.value === null || !(time.value > 0)) return null;
  const measured = time.value;
  const shape = shapeOf(kind, point);
  const peaks = 'reason' in roofs ? null : peaksAt(roofs, model, shape);
  const necessary: NecessaryTime | MissingFigure =
    'reason' in model ? model : peaks === null ? (roofs as MissingFigure) : necessaryOf(model, shape, peaks);
  const kernels = kind === 'decode' ? work.decode_kernel_ms : work.prefill_kernel_ms;
  const idleShare = kind === 'decode' ? work.decode_idle_share : work.prefill_idle_share;
  const busyMs = idleShare.value === null ? null : Math.max(0, measured * (1 - idleShare.value));
  // Without recorded steps the measured time comes from means that the engine reports, so there are no host times either.
  const host = kind === 'decode' && !('p50' in latency.itl_ms) ? null : stageHost;
  const { parts, notes } = benchParts({
    kind,
    measuredMs: measured,
    necessary,
    kernelMs: kernels.value,
    busyMs,
    kernels: kind === 'decode' ? work.decode_kernels.value : null,
    host,
    threads: workload.threads,
    onCpu: onCpu(workload),
    nodeNs: kind === 'decode' ? nodeNs : null,
    machine: point.machine,
    decodeShare: decodeShareOf(point),
  });
  const sum = parts.reduce((total, { ms }) => total + ms, 0);
  const bars = inDisplayOrder([...parts, { id: 'unattributed', ms: measured - sum }]);
  const peaksMeasured = !('reason' in roofs) && roofs.measuredPeak('float32').value !== null;
  const median = kind === 'decode' ? steps : latency.ttft_ms;
  return {
    kind,
    name: null,
    source: 'bench',
    execution_id,
    point: point.point,
    instances: time.n ?? 1,
    measured_ms: time,
    median_ms: 'p50' in median ? median.p50 : null,
    p10_ms: null,
    clock: 'host',
    clock_why: "the engine's own time stamps",
    clean_ms: time,
    ...needFields(necessary),
    sequences: shape.batchSize,
    roofs: peaks && 'architecture' in model ? peakLines(model, shape, peaks) : [],
    bars: bars.map((bar): WaterfallBar => ({
      id: bar.id,
      ms: bar.ms,
      share: bar.ms / measured,
      count: classOfBar(bar.id) === 'kernels' && kind === 'decode' ? work.decode_kernels.value : null,
      ...describeBar(bar.id, { peaksMeasured }),
      confidence: confidenceOf(bar.id),
      sql:
        host && isHostBar(bar.id)
          ? hostSql(bar.id, { executionId: execution_id, point: point.point, kind, host })
          : sqlOf(bar.id, bar.ms, { execution_id, point: point.point, kind }, kernels),
      better_capture: exactBars.has(bar.id) ? null : sharperOf(workload),
      note: notes.get(bar.id) ?? noteOf(bar.id, bar.ms, busyMs !== null),
      parts: [],
    })),
    sum_error_share: 0,
    rows: [],
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}

function shapeOf(kind: 'decode' | 'prefill', point: BenchPointResult): StageShape {
  const { batch_size: batchSize, input_len, output_len } = point;
  return kind === 'prefill'
    ? { phase: 'prefill', batchSize, newTokens: input_len, contextTokens: 0 }
    : // Step i of output_len − 1 reads a cache of input_len + i tokens. This is the mean.
      {
        phase: 'decode',
        batchSize,
        newTokens: 1,
        contextTokens: input_len + Math.max(0, output_len - 2) / 2,
      };
}

/** Peaks measured at the stage's working set, else the data sheet's. */
export function peaksAt(
  roofs: UtilizationRoofs,
  model: WorkloadModel | MissingFigure,
  shape: StageShape,
): Peaks {
  const tokens = shape.contextTokens + shape.newTokens;
  const workingSet = 'reason' in model ? 0 : workingSetBytes(model, shape.batchSize, tokens);
  const measuredElseSheet = (measured: Figure, sheet: Figure): Figure =>
    measured.value === null ? sheet : measured;
  return {
    flops: (dtype) => measuredElseSheet(roofs.measuredPeak(dtype), roofs.peak(dtype)),
    bandwidth: measuredElseSheet(roofs.measuredBandwidth(workingSet), roofs.bandwidth(workingSet)),
    level: roofs.bandwidthLevel(workingSet),
  };
}

/** In display order; `roofline` and `unattributed` are listed even if they are 0. */
const inDisplayOrder = (parts: readonly Part[]): Part[] =>
  orderedIds(parts).map((id) => parts.find((part) => part.id === id)!);

/** Time stamps around every call are exact, unlike figures that were sampled, computed or profiled once. */
const confidenceOf = (id: string): WaterfallBar['confidence'] =>
  id === 'host.loop' || id === 'host.sampling' ? 'high' : id === 'host.program' ? 'medium' : 'low';

/** Names the capture that shows causes on this engine's device. */
function sharperOf(workload: Workload): string {
  if (!onCpu(workload)) return 'inferscope run --evaluator nsys -- <command>';
  return knownEngine(workload.engine.name) === 'onnx'
    ? 'inferscope profile --model <model>'
    : 'inferscope run --evaluator torch -- <command>';
}

function decodeShareOf({ latency, output_len }: BenchPointResult): number | null {
  const [e2e, tpot] = [meanOf(latency.e2e_ms), meanOf(latency.tpot_ms)];
  return e2e.value === null || tpot.value === null || !(e2e.value > 0)
    ? null
    : (tpot.value * (output_len - 1)) / e2e.value;
}

function sqlOf(
  id: string,
  ms: number,
  point: { execution_id: string; point: string; kind: string },
  kernels: Figure,
): string | null {
  if (classOfBar(id) !== 'kernels' || kernels.value === null) return null;
  const rooflineMs = ms - kernels.value;
  const filter = `execution_id = ${literal(point.execution_id)} AND coalesce(rank, 0) = 0 AND point = ${literal(point.point)} AND kind = ${literal(point.kind)} AND stages > 0`;
  return `SELECT 'launch ' || launch AS what, kernels / stages AS count, kernel_ns / stages / 1e6 / count(*) OVER () AS ms
FROM device_work WHERE ${filter}
UNION ALL SELECT '(roofline limit, model arithmetic)', NULL, ${rooflineMs} ORDER BY 3 DESC`;
}

function noteOf(id: string, ms: number, deviceProfiled: boolean): string | null {
  if (id === 'roofline') return 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage';
  if (id === 'serial') return 'Σ over operations of max(FLOPs / peak, bytes / bandwidth), minus the roofline';
  if (id === 'unattributed') {
    if (ms < 0) {
      return deviceProfiled
        ? 'device busy time in the instrumented iteration exceeds the timed iteration'
        : 'faster than the roofline allows: model, dtype, sizes or peaks do not match the run';
    }
    return deviceProfiled
      ? 'device idle time; a benchmark does not show the cause'
      : 'time above the roofline; a benchmark does not show the cause';
  }
  if (ms >= 0) return null;
  if (isHostBar(id)) return 'calls and sampling take longer than the period that contains them: they overlap';
  return 'faster than its roofline limit: data came from a cache, or model, dtype, sizes or peaks do not match the run';
}
