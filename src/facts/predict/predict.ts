import { kvCacheBytes } from '../../llm/kv-cache.js';
import { rooflineTime } from '../../llm/roofline-time.js';
import { generationShape } from '../../llm/shape.js';
import { weightBytes } from '../../llm/storage.js';
import { totalWork } from '../../llm/work-totals.js';
import type {
  CrossValidation,
  Fusion,
  Launch,
  MeasuredStage,
  PredictOp,
  PredictResult,
  PredictStage,
} from '../../model/documents/predict.js';
import type { DType } from '../../model/dtype.js';
import { type Figure, figure, missing } from '../../model/figure.js';
import { median } from '../../model/statistics.js';
import { launchCosts } from './assumptions.js';
import { calibrationOf } from './calibration.js';
import { composeStage, type ComposedStage } from './compose.js';
import { crossValidate } from './cross-validation.js';
import type { DeviceRoofs } from './device-roofs.js';
import type { MeasuredKernel } from './kernel-table.js';
import { assumedTime, type KernelTime, kernelTime, type Roof } from './kernel-time.js';
import type { MeasuredStageTime } from './measured.js';
import { residual } from './residual.js';
import type { StageKernel, StageModel, StagePlan } from './fused-kernel.js';
import { unfusedOps, stageKernels } from './stage-kernels.js';

/** A shape to predict: its prefill, and its mean decode step. */
export interface PredictPoint {
  batchSize: number;
  inputLen: number;
  outputLen: number;
  launch: Launch;
  fusion: Fusion;
  /** Measurements of this shape to list with it. */
  measured: readonly MeasuredStageTime[];
}

interface PredictInput {
  model: StageModel;
  roofs: DeviceRoofs;
  points: readonly PredictPoint[];
  /** Null without measured kernels: stages are predicted at the roofs only. */
  table: readonly MeasuredKernel[] | null;
}

const missingTable = missing(
  'no_kernel_table',
  'no measured kernels were given: inferscope kernels --from-model measures them, --kernels reads them',
);

/** Predicts the stages of every point, and reports the table's error and the difference to measurements. */
export function predict(
  input: PredictInput,
): Pick<PredictResult, 'stages' | 'error'> & { validation: CrossValidation[] } {
  const { roofs, table } = input;
  const validation = table ? crossValidate(table, roofOf(roofs, Infinity)) : [];
  const stages = withoutRepeats(
    input.points.flatMap((point) => {
      const phases: ('prefill' | 'decode')[] = point.outputLen > 1 ? ['prefill', 'decode'] : ['prefill'];
      return phases.map((phase) => stageOf(phase, point, input, validation));
    }),
  );
  return { stages, validation, error: errorOf(stages, table ? 'table' : 'launched') };
}

/** Graphs change only decode steps: points with and without them share one prefill, which lists the measurements of both. */
function withoutRepeats(stages: readonly PredictStage[]): PredictStage[] {
  const stagesByShape = new Map<string, PredictStage>();
  for (const { measured, ...shape } of stages) {
    const key = JSON.stringify(shape);
    const others = stagesByShape.get(key)?.measured ?? [];
    stagesByShape.set(key, { ...shape, measured: [...others, ...measured] });
  }
  return [...stagesByShape.values()];
}

/** Roofline time of a kernel, ns. GEMMs and attention compute; all kernels move bytes. */
function roofOf(roofs: DeviceRoofs, workingSetBytes: number): Roof {
  const bandwidth = roofs.bandwidth(workingSetBytes).value ?? NaN;
  return ({ kernel, dtype, flops, bytes }) => {
    const computes = kernel === 'gemm' || kernel === 'attention';
    const peak = roofs.peaks[dtype as DType] ?? null;
    const compute = computes && peak !== null ? flops / peak : 0;
    return Math.max(compute, bytes / bandwidth) * 1e9;
  };
}

/** Step i of output − 1 reads the prompt + i: this is the mean. */
const meanShape = (phase: 'prefill' | 'decode', point: PredictPoint, { architecture }: StageModel) =>
  generationShape(architecture, phase, { ...point, generated: (point.outputLen - 2) / 2 });

/** Weights and KV cache that the mean step of a stage reads, bytes. */
export function workingSetOf(phase: 'prefill' | 'decode', point: PredictPoint, model: StageModel): number {
  const { architecture, storage } = model;
  const shape = meanShape(phase, point, model);
  const context = {
    kvCache: storage.kvCache,
    batchSize: shape.batchSize,
    contextTokens: shape.contextTokens + shape.newTokens,
    sourceTokens: shape.source?.tokens ?? 0,
  };
  return weightBytes(architecture, storage).total + kvCacheBytes(architecture, context);
}

/** A stage with its kernels at measured times (null without a table) and at the roofs. */
function composedOf(phase: 'prefill' | 'decode', point: PredictPoint, { model, roofs, table }: PredictInput) {
  const shape = meanShape(phase, point, model);
  const launch: Launch = phase === 'decode' ? point.launch : 'eager';
  // Self-attention of an encoder-decoder model's decoder caches the start token and the output.
  const { encoder } = model.architecture;
  const plan: StagePlan = {
    shape,
    fusion: point.fusion,
    launch,
    reserved: point.launch === 'graph' ? (encoder ? 1 : point.inputLen) + point.outputLen : null,
  };
  const workingSet = workingSetOf(phase, point, model);
  const ops = unfusedOps(model, plan);
  const roof = roofOf(roofs, workingSet);
  const kernels = stageKernels(model, plan);
  const { costs } = launchCosts(launch, roofs);
  const compose = (timeOf: (kernel: StageKernel) => KernelTime) =>
    composeStage(
      kernels.map((kernel) => ({ kernel, time: timeOf(kernel) })),
      costs,
      launch,
    );
  return {
    launch,
    kernels,
    roof,
    work: totalWork(ops),
    limit: rooflineTime(ops, roofs.peaks, roofs.bandwidth(workingSet).value),
    composed: table
      ? compose((kernel) => kernelTime(table, kernel, roof) ?? assumedTime(kernel, roof))
      : null,
    launched: compose((kernel) => ({ ns: roof(kernel), method: 'assumed' })),
  };
}

function stageOf(
  phase: 'prefill' | 'decode',
  point: PredictPoint,
  input: PredictInput,
  validation: readonly CrossValidation[],
): PredictStage {
  const { roofs } = input;
  const { launch, kernels, roof, work, limit, composed, launched } = composedOf(phase, point, input);
  const source = `${roofs.roofs === 'measured' ? 'measured roofs' : 'data sheet'} of ${roofs.name}`;
  const toFigure = (ms: number, method: string): Figure => figure(ms, 'ms', method);
  const rooflineMs =
    'bound' in limit
      ? toFigure(limit.roofline_s * 1e3, `max(Σ FLOPs / peak, Σ bytes / bandwidth), ${source}`)
      : limit;
  const predictedMs = composed
    ? toFigure(composed.totalNs / 1e6, 'measured kernels, composed')
    : missingTable;
  const launchedMs = toFigure(launched.totalNs / 1e6, 'kernels at the roofs, with assumed launches');
  const { low_ratio: low, high_ratio: high } = calibrationOf(roofs, point.fusion);
  const samePhase = point.measured.filter((time) => time.phase === phase);
  return {
    phase,
    batch_size: point.batchSize,
    input_len: point.inputLen,
    output_len: point.outputLen,
    launch,
    fusion: point.fusion,
    kernels: kernels.reduce((sum, { launches, count }) => sum + launches * count, 0),
    flops: work.flops,
    bytes: work.bytes_total,
    bound: 'bound' in limit ? limit.bound : null,
    roofline_ms: rooflineMs,
    roofline_serial_ms:
      'bound' in limit
        ? toFigure(limit.one_by_one_s * 1e3, `Σ over operations of max(F/P, B/BW), ${source}`)
        : limit,
    launched_ms: launchedMs,
    launched_range_ms:
      low === null || high === null ? null : [launchedMs.value! * low, launchedMs.value! * high],
    predicted_ms: predictedMs,
    predicted_error: composed ? errorShare(composed, validation) : null,
    device_ms: composed ? toFigure(composed.deviceNs / 1e6, 'Σ kernels') : missingTable,
    host_ms: composed
      ? toFigure(composed.hostNs / 1e6, 'launches × host time per launch, plus host time of the stage')
      : missingTable,
    beyond_table_share: composed ? extrapolatedShare(composed) : null,
    limited_by: (composed ?? launched).limitedBy,
    ops: opsOf(kernels, composed, roof),
    measured: samePhase.map((time) =>
      compareStage(
        time,
        { roofline: rooflineMs, predicted: predictedMs, launched: launchedMs },
        composed ?? launched,
      ),
    ),
  };
}

function opsOf(kernels: readonly StageKernel[], composed: ComposedStage | null, roof: Roof): PredictOp[] {
  return kernels.map((kernel, index) => {
    const timed = composed?.kernels[index];
    return {
      op: kernel.op,
      class: kernel.class,
      kernel: kernel.kernel,
      params: kernel.params,
      count: kernel.count,
      kernels: kernel.count * kernel.launches,
      roofline_us: roof(kernel) / 1e3,
      predicted_us: timed ? timed.totalNs / kernel.count / 1e3 : null,
      method: timed?.time.method ?? null,
    };
  });
}

const isExtrapolated = (method: string): boolean => method === 'extrapolated' || method === 'assumed';

function extrapolatedShare({ kernels, deviceNs }: ComposedStage): number {
  const extrapolatedNs = kernels
    .filter(({ time }) => isExtrapolated(time.method))
    .reduce((sum, { totalNs }) => sum + totalNs, 0);
  return deviceNs > 0 ? extrapolatedNs / deviceNs : 0;
}

/** Assumed error of an assumed roof share: three times the worst of 24 stages (bench/predict/README.md). */
const assumedError = 0.5;

/**
 * Error of the composition if all kernels err in the same direction: each kernel's share of the time × its
 * leave-one-out error, the median if interpolated, the worst if extrapolated. Measured cases have the interval of their
 * mean.
 */
function errorShare({ kernels, totalNs }: ComposedStage, validation: readonly CrossValidation[]): number {
  const sum = kernels.reduce((total, { kernel, time, totalNs: ns }) => {
    const kernelError =
      validation.find((entry) => entry.kernel === kernel.kernel) ??
      validation.find((entry) => entry.kernel === 'elementwise');
    const error =
      time.method === 'measured'
        ? (time.interval ?? kernelError?.median_error ?? assumedError)
        : time.method === 'interpolated'
          ? (kernelError?.median_error ?? assumedError)
          : time.method === 'extrapolated'
            ? (kernelError?.worst_error ?? assumedError)
            : assumedError;
    return total + ns * error;
  }, 0);
  return sum / totalNs;
}

function compareStage(
  time: MeasuredStageTime,
  { roofline, predicted, launched }: Record<'roofline' | 'predicted' | 'launched', Figure>,
  composed: ComposedStage,
): MeasuredStage {
  const ratio = (prediction: Figure): Figure => {
    if (prediction.value === null) return prediction;
    return time.ms.value === null
      ? time.ms
      : figure(prediction.value / time.ms.value, 'ratio', 'predicted / measured');
  };
  return {
    session: time.session,
    what: time.what,
    ms: time.ms,
    roofline_ratio: ratio(roofline),
    table_ratio: ratio(predicted),
    launched_ratio: ratio(launched),
    above_measurement: roofline.value !== null && time.ms.value !== null && roofline.value > time.ms.value,
    residual: residual(time, composed),
  };
}

function errorOf(stages: readonly PredictStage[], by: 'table' | 'launched'): PredictResult['error'] {
  const errors = (stages: readonly PredictStage[]) =>
    stages
      .flatMap(({ measured }) =>
        measured.flatMap((comparison) => {
          const { value } = comparison[`${by}_ratio`];
          return value === null ? [] : [Math.abs(value - 1)];
        }),
      )
      .toSorted((a, b) => a - b);
  const all = errors(stages);
  const decode = errors(stages.filter(({ phase }) => phase === 'decode'));
  if (all.length === 0) return null;
  return {
    predicted_by: by,
    stages: all.length,
    median: median(all),
    worst: all.at(-1)!,
    decode_median: decode.length > 0 ? median(decode) : null,
    decode_worst: decode.at(-1) ?? null,
  };
}
