import { bytesPerElement, type DType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import type { Architecture, Layer } from './architecture.js';

/**
 * Elements that one token adds to one layer's cache, on one device of a tensor-parallel group: 2 × KV heads × head_dim.
 * Heads are split over the group, and repeated if there are fewer than devices; the latent cache of MLA is not split.
 * @throws E_USAGE if the heads do not divide over the group
 */
export function kvElementsPerToken(attention: Layer['attention'], tensorParallelSize = 1): number {
  if (attention.kind === 'latent') return attention.kvRank + attention.ropeDim;
  if (attention.kind === 'recurrent' || attention.sharedKv || attention.keys === 'all') return 0;
  return 2 * kvHeadsPerDevice(attention.kvHeadCount, tensorParallelSize) * attention.headDim;
}

/** Whether each device holds a whole number of KV heads, or one copy of a head. */
export const splitsKvHeads = (kvHeadCount: number, tensorParallelSize: number): boolean =>
  Number.isInteger(tensorParallelSize) &&
  tensorParallelSize >= 1 &&
  (kvHeadCount % tensorParallelSize === 0 || tensorParallelSize % kvHeadCount === 0);

function kvHeadsPerDevice(kvHeadCount: number, tensorParallelSize: number): number {
  if (!splitsKvHeads(kvHeadCount, tensorParallelSize)) {
    throw new InferscopeError('E_USAGE', {
      what: `${kvHeadCount} KV heads cannot be split over a tensor-parallel group of ${tensorParallelSize}`,
      why: 'Each device holds a whole number of KV heads, or one copy of a head.',
      fix: `Give a --tensor-parallel-size that divides ${kvHeadCount} or is a multiple of it.`,
    });
  }
  return Math.max(1, kvHeadCount / tensorParallelSize);
}

/** Bytes one token adds to the cache of all layers, on one device. */
export function kvBytesPerToken(a: Architecture, kvCache: DType, tensorParallelSize = 1): number {
  const elements = a.layers.reduce(
    (n, { attention }) => n + kvElementsPerToken(attention, tensorParallelSize),
    0,
  );
  return elements * bytesPerElement[kvCache];
}

/** Bytes that one token of the source adds to the caches of all cross-attentions; 0 without an encoder. */
export function crossKvBytesPerToken(a: Architecture, kvCache: DType): number {
  return kvCacheBytes(
    { ...a, layers: a.layers.filter(({ cross }) => cross) },
    { kvCache, batchSize: 1, contextTokens: 0, sourceTokens: 1 },
  );
}

/**
 * Bytes of a sequence's states in all recurrent layers on one device, which do not depend on its length: the scan's
 * state and the convolution's last inputs. They are stored in at least 16 bits.
 */
export function stateBytesPerSequence(
  a: Pick<Architecture, 'layers'>,
  kvCache: DType,
  tensorParallelSize = 1,
): number {
  const elements = a.layers.reduce(
    (n, { attention }) =>
      attention.kind === 'recurrent' ? n + attention.stateElements + attention.convStateElements : n,
    0,
  );
  return (elements * Math.max(2, bytesPerElement[kvCache])) / tensorParallelSize;
}

export interface KvCacheShape {
  kvCache: DType;
  batchSize: number;
  /** Cached tokens per sequence. */
  contextTokens: number;
  tensorParallelSize?: number;
  /** Encoder-decoder models: tokens of the source, which the cross-attention caches; the context is the decoder's. */
  sourceTokens?: number;
  /**
   * Tokens that sliding-window layers store. whole: the full length, as in most engines. window: at most the window (a
   * rolling buffer). The object is vLLM's hybrid allocator: window − 1 + max_num_batched_tokens, at most max_model_len.
   */
  windows?: 'whole' | 'window' | { maxNumBatchedTokens: number; maxModelLen: number };
}

/** Bytes of the KV cache and states of a batch on one device, without an allocator's rounding to blocks. */
export function kvCacheBytes(a: Architecture, shape: KvCacheShape): number {
  const {
    kvCache,
    batchSize,
    contextTokens,
    tensorParallelSize = 1,
    windows = 'whole',
    sourceTokens = 0,
  } = shape;
  let elements = 0;
  for (const { attention, cross } of a.layers) {
    const cachedTokens = Math.min(contextTokens, storedTokens(attention.window, windows));
    elements += cachedTokens * kvElementsPerToken(attention, tensorParallelSize);
    if (cross) elements += sourceTokens * kvElementsPerToken(cross, tensorParallelSize);
  }
  const states = stateBytesPerSequence(a, kvCache, tensorParallelSize);
  return batchSize * (elements * bytesPerElement[kvCache] + states);
}

function storedTokens(window: number | null, windows: NonNullable<KvCacheShape['windows']>): number {
  if (window === null || windows === 'whole') return Infinity;
  if (windows === 'window') return window;
  return Math.min(window - 1 + windows.maxNumBatchedTokens, windows.maxModelLen);
}
