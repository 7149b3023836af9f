import type { Fusion, PredictCalibration } from '../../model/documents/predict.js';
import type { DeviceRoofs } from './device-roofs.js';

/**
 * Measured time over `launched_ms` (kernels at the data sheet's roofs) of recorded stages: mean and standard deviation
 * of its natural logarithm. `calibration.test.ts` lists the stages, computes these figures, and checks that each stage
 * is within the interval of the others, and each model within that of the other model.
 */
export const recordedResiduals = {
  device: 'NVIDIA H200',
  fusion: 'none',
  stages: 36,
  meanLog: 0.4593,
  sdLog: 0.2465,
  source:
    'stages of a 1.1 B and an 8 B Llama, Hugging Face transformers 5.17, one H200, 2026-11 (bench/predict/README.md, docs/tours/gpu.md)',
} as const satisfies { fusion: Fusion } & Record<string, unknown>;

/**
 * Interval that contains 95 % of further values, with 95 % confidence (two-sided tolerance interval of a normal
 * population, Howe, JASA 64, 1969; χ² by Wilson and Hilferty, 1931). It is wider than a prediction interval, because
 * few stages of one machine estimate the spread poorly.
 */
export function toleranceInterval(n: number, meanLog: number, sdLog: number): [low: number, high: number] {
  const z = { share: 1.959_964, confidence: 1.644_854 };
  const degrees = n - 1;
  const chiSquare = degrees * (1 - 2 / (9 * degrees) - z.confidence * Math.sqrt(2 / (9 * degrees))) ** 3;
  const half = sdLog * z.share * Math.sqrt((degrees * (1 + 1 / n)) / chiSquare);
  return [Math.exp(meanLog - half), Math.exp(meanLog + half)];
}

/** Ratio of measurements to `launched_ms` for this kind of engine and device; null figures if none were recorded. */
export function calibrationOf(roofs: Pick<DeviceRoofs, 'kind' | 'name'>, fusion: Fusion): PredictCalibration {
  const { device, fusion: recordedFusion, stages, meanLog, sdLog, source } = recordedResiduals;
  if (roofs.kind === 'gpu' && roofs.name === device && fusion === recordedFusion) {
    const [low_ratio, high_ratio] = toleranceInterval(stages, meanLog, sdLog);
    return { status: 'recorded', low_ratio, high_ratio, stages, source };
  }
  return { status: 'not_calibrated', low_ratio: null, high_ratio: null, stages: 0, source: null };
}
