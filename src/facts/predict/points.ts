import type { Fusion, Launch } from '../../model/documents/predict.js';
import { checkGrid } from '../../model/grid.js';
import type { MeasuredStageTime } from './measured.js';
import type { PredictPoint } from './predict.js';

/** Typed sizes; null takes the measurement's, else the default. */
interface TypedPoints {
  batchSizes: number[] | null;
  inputLens: number[] | null;
  outputLen: number | null;
  launch: Launch | null;
  fusion: Fusion | null;
}

const defaultShape = { batchSize: 1, inputLen: 128, outputLen: 32 } as const;

/**
 * Shapes to predict: the typed ones, else those of the measurements. Each measurement is listed with the point of its
 * shape. Without typed options the prediction launches and fuses kernels as the measured engine does.
 */
export function pointsOf(
  requested: TypedPoints,
  measured: readonly MeasuredStageTime[],
  defaults: { launch: Launch; fusion: Fusion },
): PredictPoint[] {
  const points = new Map<string, PredictPoint & { measured: MeasuredStageTime[] }>();
  const pointFor = (shape: Omit<PredictPoint, 'measured'>) => {
    const key = JSON.stringify(shape);
    const point = points.get(key) ?? { ...shape, measured: [] };
    points.set(key, point);
    return point;
  };
  const isRequested = (time: MeasuredStageTime): boolean =>
    (requested.batchSizes?.includes(time.batchSize) ?? true) &&
    (requested.inputLens?.includes(time.inputLen) ?? true) &&
    (requested.outputLen === null || requested.outputLen === time.outputLen);
  // A prefill is launched kernel by kernel also where decode steps are graphs: it belongs to their point.
  const launchOf = (time: MeasuredStageTime): Launch => {
    const decodes = measured.filter(
      (other) =>
        other.phase === 'decode' &&
        (['session', 'batchSize', 'inputLen', 'outputLen', 'fusion'] as const).every(
          (key) => other[key] === time[key],
        ),
    );
    return time.phase === 'prefill' && decodes.length === 1 ? decodes[0]!.launch : time.launch;
  };
  for (const time of measured.filter(isRequested)) {
    pointFor({
      batchSize: time.batchSize,
      inputLen: time.inputLen,
      outputLen: time.outputLen,
      launch: requested.launch ?? launchOf(time),
      fusion: requested.fusion ?? time.fusion,
    }).measured.push(time);
  }
  const hasPoint = (batch: number, context: number) =>
    [...points.values()].some((point) => point.batchSize === batch && point.inputLen === context);
  const sizesTyped = requested.batchSizes !== null || requested.inputLens !== null || points.size === 0;
  if (sizesTyped) {
    const sizes = {
      '--batch-size': requested.batchSizes?.length ?? 1,
      '--input-len': requested.inputLens?.length ?? 1,
    };
    checkGrid(sizes, 'points', 1000);
    for (const batchSize of requested.batchSizes ?? [defaultShape.batchSize]) {
      for (const inputLen of requested.inputLens ?? [defaultShape.inputLen]) {
        if (hasPoint(batchSize, inputLen)) continue;
        pointFor({
          batchSize,
          inputLen,
          outputLen: requested.outputLen ?? defaultShape.outputLen,
          launch: requested.launch ?? defaults.launch,
          fusion: requested.fusion ?? defaults.fusion,
        });
      }
    }
  }
  return [...points.values()];
}
