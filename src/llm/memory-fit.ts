import type { Architecture } from './architecture.js';
import { estimateMemory } from './memory-estimate.js';
import type { MemoryRequest } from './memory-request.js';

/** The largest values that still fit, each with the others as asked; 0 when not even one does, null without a GPU's size. */
export interface LargestFit {
  /** Tokens of each sequence, prompt and output, at the batch asked for; never over the model's positions. */
  contextTokens: number | null;
  /** Sequences of the length asked for. */
  batchSize: number | null;
  /** Sequences of max_model_len (vLLM), else of the length asked for, at once. */
  concurrency: number | null;
}

/** Searching stops here: no GPU holds more sequences of one token. */
const mostSequences = 2 ** 20;
/** For models that do not say how many positions they have. */
const mostTokens = 2 ** 24;

/**
 * What would fit: growing context or batch only ever takes more, so bisection finds the largest.
 * A longer context has a longer prompt; the output stays as it is.
 */
export function largestFit(a: Architecture, request: MemoryRequest): LargestFit {
  if (!request.gpu?.totalBytes) return { contextTokens: null, batchSize: null, concurrency: null };
  const fits = (change: Partial<MemoryRequest>): boolean =>
    estimateMemory(a, { ...request, ...change }).fits === true;
  const { outputLen } = request;
  const positions = request.maxModelLen ?? a.maxPositions ?? mostTokens;
  const contextTokens = largest(outputLen + 1, positions, (tokens) => fits({ inputLen: tokens - outputLen }));
  const batchSize = largest(1, mostSequences, (batch) => fits({ batchSize: batch }));
  const { engine, kvPool } = estimateMemory(a, request);
  return {
    contextTokens,
    batchSize,
    concurrency: engine === 'vllm' ? Math.floor(kvPool?.concurrency ?? 0) : batchSize,
  };
}

/** The largest whole number in [from, to] that passes, when passing ends once; 0 when `from` fails. */
function largest(from: number, to: number, passes: (value: number) => boolean): number {
  if (to < from || !passes(from)) return 0;
  let low = from;
  let high = from;
  while (high < to && passes(Math.min(to, high * 2))) {
    high = Math.min(to, high * 2);
    low = high;
  }
  if (low >= to) return to;
  high = Math.min(to, high * 2);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (passes(middle)) low = middle;
    else high = middle;
  }
  return low;
}
