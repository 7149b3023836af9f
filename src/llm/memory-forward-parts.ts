import type { Architecture, Layer } from './architecture.js';
import { freeAll, replaceBlock, type Place, type TensorMemory } from './memory-tensors.js';

/** One forward pass over `newTokens` of each sequence after `cachedTokens`. */
export interface Forward<B> {
  memory: TensorMemory<B>;
  enter: (place: Place) => void;
  a: Architecture;
  /** Bytes per element of activations and cache. */
  b: number;
  /** Two bytes, and not float16. */
  isBfloat16: boolean;
  sequences: number;
  newTokens: number;
  cachedTokens: number;
  /** Devices of the tensor-parallel group. */
  tensor: number;
  attention: 'fused' | 'eager';
  cache: CacheTensors<B>;
}

export interface CachedLayer<B> {
  keys: B;
  values: B;
}

/** Keys and values of all layers, as transformers' Cache keeps them. */
export interface CacheTensors<B> {
  /** growing: torch.cat reallocates each layer; static: all tokens from the start, written in place. */
  kind: 'growing' | 'static';
  /** Tokens per sequence in a layer of the static cache. */
  length: number;
  /** Windowed layers keep only their window from the first decode step on. */
  windowed: boolean;
  layers: (CachedLayer<B> | null)[];
  /** Bytes of keys and of values of a layer for this many tokens of each sequence. */
  halves: (layer: Layer, tokens: number) => [number, number];
}

/**
 * Whether a layer gets a mask: fused attention handles causal order without one, but not windows or unused positions.
 */
export function isMasked<B>(
  { attention, newTokens, cachedTokens, cache }: Forward<B>,
  layer: Layer,
): boolean {
  const { window } = layer.attention;
  return (
    attention === 'eager' ||
    cache.kind === 'static' ||
    (window !== null && newTokens + cachedTokens >= window)
  );
}

/** Tokens that a layer attends to. */
export function keysOf<B>(
  { newTokens, cachedTokens, cache }: Pick<Forward<B>, 'newTokens' | 'cachedTokens' | 'cache'>,
  layer: Layer,
): number {
  if (cache.kind === 'static') return cache.length;
  const { window } = layer.attention;
  const isWindowed = cache.windowed && cachedTokens > 0 && window !== null;
  return isWindowed ? Math.min(cachedTokens + newTokens, window) : cachedTokens + newTokens;
}

/**
 * A norm over `elements`. RMSNorm works in float32: Llama's multiplies by the weight after converting back to the
 * dtype, Gemma's before. LayerNorm is one kernel.
 */
export function normTensors<B>(
  { memory, a, b }: Pick<Forward<B>, 'memory' | 'a' | 'b'>,
  elements: number,
): B {
  if (a.norm === 'layernorm') return memory.malloc(elements * b);
  const wide = b < 4 ? [memory.malloc(elements * 4)] : [];
  memory.free(memory.malloc(elements * 4));
  const scaled = memory.malloc(elements * 4);
  freeAll(memory, wide);
  if (a.family.startsWith('Gemma')) {
    const weighted = replaceBlock(memory, scaled, elements * 4);
    return b < 4 ? replaceBlock(memory, weighted, elements * b) : weighted;
  }
  const narrow = b < 4 ? [memory.malloc(elements * b)] : [];
  const output = memory.malloc(elements * b);
  freeAll(memory, narrow);
  memory.free(scaled);
  return output;
}
