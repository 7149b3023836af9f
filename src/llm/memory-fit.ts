import type { Architecture } from './architecture.js';
import { memoryEstimator } from './memory-estimate.js';
import type { MemoryRequest } from './memory-request.js';

/** The largest values that still fit, each with the others as asked; 0 when not even one does, null without a GPU's size. */
interface LargestFit {
  /** Tokens of each sequence, prompt and output, at the batch asked for; never over the model's positions. */
  contextTokens: number | null;
  /** Sequences of the length asked for. */
  batchSize: number | null;
  /** Sequences of max_model_len (vLLM), else of the length asked for, at once. */
  concurrency: number | null;
}

/** Searching stops here: no GPU holds more sequences of one token. */
const maxSequences = 2 ** 20;
/** For models that do not say how many positions they have. */
const maxTokens = 2 ** 24;

/**
 * What would fit: growing context or batch only ever takes more, so bisection finds the largest.
 */
export function largestFit(a: Architecture, request: MemoryRequest): LargestFit {
  if (!request.gpu?.totalBytes) return { contextTokens: null, batchSize: null, concurrency: null };
  const at = memoryEstimator(a, request);
  const batchSize = largest(1, maxSequences, (batch) => at({ batchSize: batch }).fits === true);
  const { engine, kvPool } = at({});
  return {
    contextTokens: largestContext(a, request),
    batchSize,
    concurrency: engine === 'vllm' ? Math.floor(kvPool?.concurrency ?? 0) : batchSize,
  };
}

/** Longest sequence at the batch asked for; a longer one has a longer prompt, the output stays. */
export function largestContext(a: Architecture, request: MemoryRequest): number {
  const at = memoryEstimator(a, request);
  const { outputLen } = request;
  const positions = request.maxModelLen ?? a.maxPositions ?? maxTokens;
  return largest(outputLen + 1, positions, (tokens) => at({ inputLen: tokens - outputLen }).fits === true);
}

/** The largest whole number in [from, to] that passes, when passing ends once; 0 when `from` fails. */
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
