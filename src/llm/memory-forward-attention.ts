import type { GroupedAttention, LatentAttention, Layer, RecurrentMixer } from './architecture.js';
import { isMasked, keysOf, normTensors, type CachedLayer, type Forward } from './memory-forward-parts.js';
import { freeAll, replaceBlock, type TensorMemory } from './memory-tensors.js';

interface AttentionResult<B> {
  output: B;
  cached: CachedLayer<B>;
  /** Unfused attention's scores, which the layer returns with its output and keeps until its end. */
  weights: B[];
}

/** Attention of one layer, with its projections. */
export function attentionTensors<B>(
  forward: Forward<B>,
  layer: Layer,
  before: CachedLayer<B> | null,
): AttentionResult<B> {
  const { attention } = layer;
  if (attention.kind === 'recurrent') return recurrentTensors(forward, layer, attention, before);
  return attention.kind === 'latent'
    ? latentTensors(forward, layer, attention, before)
    : groupedTensors(forward, layer, attention, before);
}

/** Projections, convolution and scan of a recurrence. States are updated in place. */
function recurrentTensors<B>(
  forward: Forward<B>,
  layer: Layer,
  mixer: RecurrentMixer,
  before: CachedLayer<B> | null,
): AttentionResult<B> {
  const { memory, b, sequences, newTokens, tensor, cache } = forward;
  const tokens = sequences * newTokens;
  const projected = memory.malloc((tokens * mixer.inRows * b) / tensor);
  const convolved = replaceBlock(
    memory,
    memory.malloc((tokens * mixer.convChannels * b) / tensor),
    (tokens * mixer.convChannels * b) / tensor,
  );
  const [convBytes, stateBytes] = cache.halves(layer, forward.cachedTokens + newTokens);
  const cached = before ?? { keys: memory.malloc(convBytes), values: memory.malloc(stateBytes) };
  const scanned = memory.malloc((tokens * mixer.innerSize * b) / tensor);
  memory.free(convolved);
  const output = memory.malloc(tokens * forward.a.hiddenSize * b);
  freeAll(memory, [projected, scanned]);
  return { output, cached, weights: [] };
}

function groupedTensors<B>(
  forward: Forward<B>,
  layer: Layer,
  attention: GroupedAttention,
  before: CachedLayer<B> | null,
): AttentionResult<B> {
  const { memory, b, sequences, newTokens, tensor } = forward;
  const tokens = sequences * newTokens;
  const heads = attention.headCount / tensor;
  const kvHeads = Math.max(1, attention.kvHeadCount / tensor);
  const queryBytes = tokens * heads * attention.headDim * b;
  const { untilReturn, untilCached } = projectQkv(
    forward,
    attention,
    queryBytes,
    tokens * kvHeads * attention.headDim * b,
  );
  const cached = extendCache(forward, layer, before);
  freeAll(memory, untilCached);
  const allHeads = sequences * keysOf(forward, layer) * heads * attention.headDim * b;
  // A single head is repeated as a view, which only a GEMM copies.
  const isShared = kvHeads === 1 && heads > 1;
  const core = attentionCore(forward, layer, {
    heads,
    outputBytes: queryBytes,
    repeats: kvHeads < heads && !isShared ? allHeads : 0,
    scoreCopies: queryBytes + (isShared ? allHeads : 0),
    outputCopies: isShared ? allHeads : 0,
  });
  const output = memory.malloc(tokens * forward.a.hiddenSize * b);
  freeAll(memory, [core.attended, ...untilReturn]);
  return { output, cached, weights: core.weights };
}

/** Query, key and value. Each is freed when the attention of the layer returns, or when it is in the cache. */
function projectQkv<B>(
  { memory, a, b }: Forward<B>,
  attention: GroupedAttention,
  queryBytes: number,
  kvBytes: number,
): { untilReturn: B[]; untilCached: B[] } {
  // One matrix for all three; its parts are views.
  if (a.family === 'GPT-2')
    return { untilReturn: [memory.malloc(queryBytes + 2 * kvBytes)], untilCached: [] };
  if (a.family === 'Phi-3') {
    const all = memory.malloc(queryBytes + 2 * kvBytes);
    return { untilReturn: [rotate(memory, queryBytes), all], untilCached: [rotate(memory, kvBytes)] };
  }
  let query = memory.malloc(queryBytes);
  if (attention.rotaryDim === 0) {
    query = replaceBlock(memory, query, queryBytes);
    const fresh = [memory.malloc(kvBytes), memory.malloc(kvBytes)];
    return { untilReturn: [query], untilCached: fresh };
  }
  const qkNormed = attention.qkNorm === 'rmsnorm';
  const normed = (block: B, bytes: number): B => {
    const next = normTensors({ memory, a, b }, bytes / b);
    memory.free(block);
    return next;
  };
  // Qwen3 norms each after its projection, Gemma 3 after all three exist.
  const normsLast = a.family === 'Gemma 3';
  if (qkNormed && !normsLast) query = normed(query, queryBytes);
  let key = memory.malloc(kvBytes);
  if (qkNormed && !normsLast) key = normed(key, kvBytes);
  const value = memory.malloc(kvBytes);
  if (qkNormed && normsLast) {
    query = normed(query, queryBytes);
    key = normed(key, kvBytes);
  }
  const share = attention.rotaryDim / attention.headDim;
  const turnedQuery = rotate(memory, queryBytes * share);
  const turnedKey = rotate(memory, kvBytes * share);
  if (share === 1) {
    memory.free(query);
    memory.free(key);
    return { untilReturn: [turnedQuery], untilCached: [turnedKey, value] };
  }
  // The remaining dimensions of each head are concatenated after the rotated ones.
  const joinedQuery = memory.malloc(queryBytes);
  return {
    untilReturn: [joinedQuery, turnedQuery, query, turnedKey, key],
    untilCached: [memory.malloc(kvBytes), value],
  };
}

/** x·cos + rotate_half(x)·sin, operation by operation. */
function rotate<B>(memory: TensorMemory<B>, bytes: number): B {
  const cosine = memory.malloc(bytes);
  const half = memory.malloc(bytes / 2);
  const swapped = memory.malloc(bytes);
  memory.free(half);
  const sine = memory.malloc(bytes);
  memory.free(swapped);
  const turned = memory.malloc(bytes);
  freeAll(memory, [cosine, sine]);
  return turned;
}

/** The cache with the new tokens: reallocated by torch.cat, or the same. */
function extendCache<B>(
  { memory, cache, cachedTokens, newTokens }: Forward<B>,
  layer: Layer,
  before: CachedLayer<B> | null,
): CachedLayer<B> {
  if (cache.kind === 'static' && before) return before;
  const tokens = cache.kind === 'static' ? cache.length : cachedTokens + newTokens;
  const [keyBytes, valueBytes] = cache.halves(layer, tokens);
  if (!before) return { keys: memory.malloc(keyBytes), values: memory.malloc(valueBytes) };
  // A layer with a window makes both new tensors before it drops the old ones.
  if (layer.attention.window !== null) {
    const next = { keys: memory.malloc(keyBytes), values: memory.malloc(valueBytes) };
    freeAll(memory, [before.keys, before.values]);
    return next;
  }
  const keys = replaceBlock(memory, before.keys, keyBytes);
  return { keys, values: replaceBlock(memory, before.values, valueBytes) };
}

interface CoreSizes {
  heads: number;
  outputBytes: number;
  /** Bytes of K, and of V, repeated for all heads; 0 if each head has its own. */
  repeats: number;
  /** Bytes that unfused GEMMs copy of inputs with gaps: of query and keys, and of values. */
  scoreCopies: number;
  outputCopies: number;
}

function attentionCore<B>(forward: Forward<B>, layer: Layer, core: CoreSizes): { attended: B; weights: B[] } {
  const { memory, b, sequences, newTokens, attention } = forward;
  const masked = isMasked(forward, layer);
  const places = sequences * newTokens * keysOf(forward, layer);
  const repeated =
    masked && core.repeats > 0 ? [memory.malloc(core.repeats), memory.malloc(core.repeats)] : [];
  if (attention === 'fused') {
    // A boolean mask is converted to numbers, per sequence.
    const mask = masked ? [memory.malloc(places * b)] : [];
    const attended = memory.malloc(core.outputBytes);
    freeAll(memory, [...mask, ...repeated]);
    return { attended, weights: [] };
  }
  const copied = core.scoreCopies > 0 ? [memory.malloc(core.scoreCopies)] : [];
  const weights = scoreTensors(forward, places * core.heads, copied);
  const values = core.outputCopies > 0 ? [memory.malloc(core.outputCopies)] : [];
  const product = memory.malloc(core.outputBytes);
  freeAll(memory, values);
  const attended = replaceBlock(memory, product, core.outputBytes);
  freeAll(memory, repeated);
  return { attended, weights: [weights] };
}

/**
 * softmax(q·kᵀ·scale + mask) in float32, converted back to the dtype. The previous scores are still referenced: 2·b
 * + 4 bytes per score. softmax converts float16 to float32 itself; bfloat16 is copied first (aten/native/SoftMax.cpp).
 */
function scoreTensors<B>({ memory, a, b, isBfloat16 }: Forward<B>, count: number, copied: readonly B[]): B {
  const product = memory.malloc(count * b);
  freeAll(memory, copied);
  const scaled = replaceBlock(memory, product, count * b);
  const added = replaceBlock(memory, scaled, count * b);
  // GPT-2 computes softmax in its dtype.
  if (a.family === 'GPT-2') return replaceBlock(memory, added, count * b);
  const converted = isBfloat16 ? [memory.malloc(count * 4)] : [];
  const soft = memory.malloc(count * 4);
  freeAll(memory, converted);
  const weights = b === 4 ? soft : replaceBlock(memory, soft, count * b);
  memory.free(added);
  return weights;
}

/** The cache stores the latent; keys and values of all heads are computed from it in each step. */
function latentTensors<B>(
  forward: Forward<B>,
  layer: Layer,
  attention: LatentAttention,
  before: CachedLayer<B> | null,
): AttentionResult<B> {
  const { memory, a, b, sequences, newTokens, tensor } = forward;
  const tokens = sequences * newTokens;
  const heads = attention.headCount / tensor;
  const queryBytes = tokens * heads * (attention.nopeDim + attention.ropeDim) * b;
  if (attention.queryRank !== null) {
    const low = memory.malloc(tokens * attention.queryRank * b);
    const normed = normTensors(forward, tokens * attention.queryRank);
    freeAll(memory, [low, normed]);
  }
  const query = memory.malloc(queryBytes);
  const joint = memory.malloc(tokens * (attention.kvRank + attention.ropeDim) * b);
  const nope = normTensors(forward, tokens * attention.kvRank);
  // Rotated as complex numbers, in float32.
  const wide = tokens * heads * attention.ropeDim;
  const float = memory.malloc(wide * 4);
  const product = memory.malloc(wide * 4);
  const turned = replaceBlock(memory, product, wide * b);
  memory.free(float);
  const cached = extendCache(forward, layer, before);
  memory.free(nope);
  const joinedQuery = memory.malloc(queryBytes);
  const length = sequences * keysOf(forward, layer);
  const expanded = memory.malloc(length * heads * (attention.nopeDim + attention.valueDim) * b);
  const keys = memory.malloc(length * heads * (attention.nopeDim + attention.ropeDim) * b);
  const outputBytes = tokens * heads * attention.valueDim * b;
  const core = attentionCore(forward, layer, {
    heads,
    outputBytes,
    repeats: 0,
    scoreCopies: 0,
    // Values are a view of the combined key-value projection.
    outputCopies: length * heads * attention.valueDim * b,
  });
  const output = memory.malloc(tokens * a.hiddenSize * b);
  freeAll(memory, [core.attended, query, turned, joint, joinedQuery, keys, expanded]);
  return { output, cached, weights: core.weights };
}
