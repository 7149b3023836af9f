import type { Architecture } from './architecture.js';
import { memoryEstimator } from './memory-estimate.js';
import type { MemoryRequest } from './memory-request.js';

/**
 * The largest values that still fit, with the other values as requested; 0 if not even one does, null if the GPU's size
 * is unknown, or if the model has fewer positions than the requested output.
 */
interface LargestFit {
  /** Tokens per sequence, prompt and output, at the requested batch; at most the model's positions. */
  contextTokens: number | null;
  /** Number of sequences of the requested length. */
  batchSize: number | null;
  /** Concurrent sequences of max_model_len (vLLM), else of the requested length. */
  concurrency: number | null;
}

/** Upper limit of the search: no GPU has room for more one-token sequences. */
const maxSequences = 2 ** 20;
/** For models without a stated number of positions. */
const maxTokens = 2 ** 24;

/** Memory only grows with context and batch, so bisection finds the largest values. */
export function largestFit(a: Architecture, request: MemoryRequest): LargestFit {
  if (!request.gpu?.totalBytes) return { contextTokens: null, batchSize: null, concurrency: null };
  const estimateFor = memoryEstimator(a, request);
  const batchSize = largest(
    1,
    maxSequences,
    (batch) => estimateFor({ batchSize: batch }).holdsBatch === true,
  );
  const { engine, kvPool } = estimateFor({});
  return {
    contextTokens: positionsOf(a, request) > request.outputLen ? largestContext(a, request) : null,
    batchSize,
    concurrency: engine === 'vllm' ? Math.floor(kvPool?.concurrency ?? 0) : batchSize,
  };
}

const positionsOf = (a: Architecture, request: MemoryRequest): number =>
  request.maxModelLen ?? a.maxPositions ?? maxTokens;

/** Longest sequence at the requested batch. The output stays as requested and the prompt grows. */
export function largestContext(a: Architecture, request: MemoryRequest): number {
  const estimateFor = memoryEstimator(a, request);
  const { outputLen } = request;
  return largest(
    outputLen + 1,
    positionsOf(a, request),
    (tokens) => estimateFor({ inputLen: tokens - outputLen }).holdsBatch === true,
  );
}

/** The largest max_model_len with which vLLM starts and holds the batch; 0 if there is none. */
export function largestModelLen(a: Architecture, request: MemoryRequest): number {
  const estimateFor = memoryEstimator(a, request);
  return largest(
    request.inputLen + request.outputLen,
    positionsOf(a, request),
    (maxModelLen) => estimateFor({ maxModelLen }).fits === true,
  );
}

/** The largest integer in [from, to] that passes, if all values up to it pass; 0 if `from` fails. */
function largest(from: number, to: number, passes: (value: number) => boolean): number {
  if (to < from || !passes(from)) return 0;
  if (passes(to)) return to;
  let low = from;
  let high = from;
  while (high < to && passes(Math.min(to, high * 2))) {
    high = Math.min(to, high * 2);
    low = high;
  }
  high = Math.min(to, high * 2);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (passes(middle)) low = middle;
    else high = middle;
  }
  return low;
}
