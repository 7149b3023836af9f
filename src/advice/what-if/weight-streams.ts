import type { Storage } from '../../llm/storage.js';
import type { WeightStream } from '../../model/documents/roofline.js';
import type { StageNeeds, StageState } from './stage-state.js';

/** The roofline's name of a weight format; null if it does not measure the format. */
export function streamFormat({ weights }: Storage): string | null {
  if (weights.name === 'float32') return 'float32';
  return weights.linear.bytesPerWeight === 0.5 && weights.compute === 'int8' ? 'int4' : null;
}

/** Weights per second of the measured stream; null if this format was not measured at this batch. */
export function streamRate(
  streams: readonly WeightStream[],
  format: string | null,
  batchSize: number,
): number | null {
  const stream = streams.find(
    (candidate) => candidate.format === format && candidate.batch_size === batchSize,
  );
  return stream?.weights_per_s ?? null;
}

/**
 * Ratio of a decode step's GEMM time after a change to the time before, from weight-stream rates measured on this CPU:
 * kernels of other formats and batches reach other shares of the roof. Null if one of the two was not measured.
 */
export function streamFactor(
  { weightStreams }: StageState,
  before: StageNeeds,
  after: StageNeeds,
): number | null {
  if (before.shape.phase !== 'decode') return null;
  const rateOf = ({ model, shape }: StageNeeds) =>
    streamRate(weightStreams, streamFormat(model.storage), shape.batchSize);
  const [from, to] = [rateOf(before), rateOf(after)];
  return from === null || to === null ? null : from / to;
}
