import type { Tensor } from 'onnxruntime-node';
import type { OnnxRuntime } from './runtime.js';

/** One past_key_values input, the present output that continues it, and the fixed sizes. */
export interface CacheEntry {
  past: string;
  present: string;
  numKvHeads: number;
  headDim: number;
}

/** Past keys and values between two calls of the model. */
export interface KvCache {
  /** Inputs of the next call. */
  feeds(): Record<string, Tensor>;
  /** Outputs of the next call: a tensor to write into, or null for a new one. */
  fetches(): Record<string, Tensor | null>;
  /** Makes these outputs the past of the next call. */
  carryOver(outputs: Record<string, Tensor>): void;
  dispose(): void;
}

/** Buffers of in-place caches by name; a smaller cache uses the start of a larger one's buffer. */
export type CacheMemory = Map<string, Float32Array>;

/**
 * In place: each entry is one buffer [batch, kv heads, capacity, head_dim] that is past and present at once.
 * GroupQueryAttention appends the new keys and copies nothing itself. Only for graphs with that operator.
 */
export function cacheInPlace(
  ort: OnnxRuntime,
  entries: CacheEntry[],
  batchSize: number,
  capacity: number,
  memory: CacheMemory = new Map(),
): KvCache {
  const past: Record<string, Tensor> = {};
  const present: Record<string, Tensor> = {};
  for (const entry of entries) {
    const dims = [batchSize, entry.numKvHeads, capacity, entry.headDim];
    const length = dims.reduce((product, dimension) => product * dimension, 1);
    if ((memory.get(entry.past)?.length ?? 0) < length) {
      // The old buffer is dropped first, so that both never exist at once.
      memory.delete(entry.past);
      memory.set(entry.past, new Float32Array(length));
    }
    const data = memory.get(entry.past)!.subarray(0, length);
    past[entry.past] = present[entry.present] = new ort.Tensor('float32', data, dims);
  }
  return {
    feeds: () => past,
    fetches: () => present,
    carryOver: () => undefined,
    dispose: () => Object.values(past).forEach((tensor) => tensor.dispose()),
  };
}

/** Growing: every call returns new, longer present tensors, as in any export; the old ones are freed immediately. */
export function cacheGrowing(ort: OnnxRuntime, entries: CacheEntry[], batchSize: number): KvCache {
  let past: Record<string, Tensor> = {};
  const present: Record<string, null> = {};
  for (const entry of entries) {
    const dims = [batchSize, entry.numKvHeads, 0, entry.headDim];
    past[entry.past] = new ort.Tensor('float32', new Float32Array(0), dims);
    present[entry.present] = null;
  }
  const dispose = () => Object.values(past).forEach((tensor) => tensor.dispose());
  return {
    feeds: () => past,
    fetches: () => present,
    carryOver(outputs) {
      dispose();
      past = Object.fromEntries(entries.map((entry) => [entry.past, outputs[entry.present]!]));
    },
    dispose,
  };
}
