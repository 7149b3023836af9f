import { rooflineTime } from '../../llm/roofline-time.js';
import { addToMean, type ShapeCount, type StageShape } from '../../llm/shape.js';
import { samplingOp, stageWork } from '../../llm/work.js';
import type { OpClass } from '../../model/classes.js';
import type { DType } from '../../model/dtype.js';
import type { PeakDType } from '../../hardware/gpu-sheet.js';
import { type Figure, missing, type MissingFigure } from '../../model/figure.js';
import type { WorkloadModel } from '../model-work.js';
import type { GpuRoofs } from '../roofs.js';
import { shapeOf } from '../utilization/groups.js';
import type { SizedStep } from '../utilization/sizes.js';
import { neededPeaks } from '../utilization/roofs.js';
import { bandwidthName, type NamedPeak, peakName, peakTexts } from '../../vocabulary/peaks.js';

/**
 * Time that the model's operations need on this device, ms. Work is the whole model's, peaks are the sum of all its
 * GPUs.
 */
export interface NecessaryTime {
  /** max(Σ F/P, ΣB/BW) over the forward pass, without sampling. */
  rooflineMs: number;
  /** Σ max(F/P, B/BW) of the operations of each class. */
  byClass: Map<OpClass, number>;
  bound: 'compute' | 'memory';
  /** New tokens of all sequences; null if an instance is not one forward pass. */
  tokens: number | null;
  /** Whether rooflineMs is a sum over several steps. */
  overSteps?: boolean;
}

export interface Peaks {
  flops: (dtype: DType) => Figure;
  bandwidth: Figure;
  /** The memory level of that bandwidth, on a CPU; default: the memory of the device. */
  level?: string | null;
  /** Share of the data sheet's peak that was measured; null if clocks were not throttled then. */
  throttledShare?: (dtype: DType) => number | null;
  /** Whether only one of this peak and the bandwidth was measured; default: no. */
  hasSeveralSources?: (dtype: DType) => boolean;
  /** The dtype that matrix multiplications of a dtype ran as; default: the same. */
  ranAs?: (dtype: DType) => PeakDType;
}

/**
 * Measured peaks, else the data sheet's.
 * @param float32As whether float32 matrix multiplications ran as TF32
 */
export const gpuPeaks = (roofs: GpuRoofs, float32As: 'float32' | 'tfloat32' = 'float32'): Peaks => {
  const ranAs = (dtype: DType): PeakDType => (dtype === 'float32' ? float32As : dtype);
  return {
    flops: (dtype) => roofs.roofFlops(ranAs(dtype)),
    bandwidth: roofs.roofBandwidth,
    ranAs,
    hasSeveralSources: (dtype) => roofs.measured !== null && !roofs.roofsAreMeasured(ranAs(dtype)),
    throttledShare: (dtype) =>
      roofs.wasThrottled(ranAs(dtype))
        ? (roofs.roofFlops(ranAs(dtype)).value ?? Number.NaN) /
          (roofs.mfuFlops(ranAs(dtype)).value ?? Number.NaN)
        : null,
  };
};

/** Maximum number of distinct shapes; the mean over more is not meaningful. */
const maxShapes = 256;

/** Necessary time of one shape; missing if a peak is missing. */
export function necessaryOf(
  { architecture, storage }: WorkloadModel,
  shape: StageShape,
  peaks: Peaks,
): NecessaryTime | MissingFigure {
  const ops = stageWork(architecture, shape, storage);
  const flops = neededPeaks(
    [...new Set(ops.filter((op) => op.flops > 0).map(({ dtype }) => dtype))],
    (dtype) => peaks.flops(dtype as DType),
  );
  if ('reason' in flops) return flops;
  if (peaks.bandwidth.value === null) return peaks.bandwidth;
  const withSampling = [...ops, samplingOp(architecture, shape, storage)];
  const total = rooflineTime(ops, flops, peaks.bandwidth.value);
  const all = rooflineTime(withSampling, flops, peaks.bandwidth.value);
  if ('reason' in total) return total;
  if ('reason' in all) return all;
  return {
    rooflineMs: total.roofline_s * 1e3,
    byClass: new Map(all.by_class.map((row) => [row.class, row.seconds * 1e3])),
    bound: total.bound,
    tokens: shape.batchSize * shape.newTokens,
  };
}

/**
 * Necessary time of a mean step. Every distinct shape is computed. Decode steps of one batch size use their mean
 * context, in which the work is linear.
 */
export function meanNecessary(
  steps: readonly SizedStep[],
  model: WorkloadModel,
  peaks: Peaks,
): NecessaryTime | MissingFigure {
  if (steps.length === 0) return missing('no_steps', 'the stage has no steps');
  const shapes = new Map<string, ShapeCount>();
  for (const step of steps) {
    const shape = shapeOf(step);
    if ('reason' in shape) return shape;
    const decode = shape.phase === 'decode';
    const lengths = decode ? [] : [shape.contextTokens, shape.source?.tokens];
    const key = [shape.batchSize, shape.newTokens, shape.source?.step, ...lengths].join(' ');
    const known = shapes.get(key);
    if (known) addToMean(known, { shape, steps: 1 });
    else shapes.set(key, { shape, steps: 1 });
  }
  if (shapes.size > maxShapes) {
    return missing('too_many_shapes', `the stage has ${shapes.size} shapes, so a mean is not meaningful`);
  }
  const mean: NecessaryTime = {
    rooflineMs: 0,
    byClass: new Map(),
    bound: 'memory',
    tokens: 0,
  };
  let computeBoundShare = 0;
  for (const { shape, steps: count } of shapes.values()) {
    const shapeNeed = necessaryOf(model, shape, peaks);
    if ('reason' in shapeNeed) return shapeNeed;
    const share = count / steps.length;
    mean.rooflineMs += shapeNeed.rooflineMs * share;
    mean.tokens = (mean.tokens ?? 0) + (shapeNeed.tokens ?? 0) * share;
    for (const [opClass, value] of shapeNeed.byClass)
      mean.byClass.set(opClass, (mean.byClass.get(opClass) ?? 0) + value * share);
    if (shapeNeed.bound === 'compute') computeBoundShare += share;
  }
  return { ...mean, bound: computeBoundShare > 0.5 ? 'compute' : 'memory' };
}

export function peakLines(model: WorkloadModel, shape: StageShape, peaks: Peaks): string[] {
  const ops = stageWork(model.architecture, shape, model.storage).filter(({ flops }) => flops > 0);
  const dtypes = [...new Set(ops.map(({ dtype }) => dtype))];
  const named = dtypes.map((dtype): NamedPeak => [
    peakName(dtype, peaks.ranAs?.(dtype) ?? dtype),
    peaks.flops(dtype),
  ]);
  const severalSources = dtypes.some((dtype) => peaks.hasSeveralSources?.(dtype) ?? false);
  return peakTexts([...named, [bandwidthName(peaks.level ?? null), peaks.bandwidth]], { severalSources });
}
