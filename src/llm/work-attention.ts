import { bytesPerElement } from '../model/dtype.js';
import type { GroupedAttention, LatentAttention, Layer, RecurrentMixer } from './architecture.js';
import { kvElementsPerToken } from './kv-cache.js';
import { linearOp, operation, sum, type NecessaryOp, type Stage } from './necessary-op.js';
import { attendedKeys, cachedKeysRead } from './shape.js';
import { tensorBytes } from './storage.js';
import { parametersOf, type Tensor } from './tensors.js';

type TensorByName = (name: string) => Tensor;

/** Operations from a layer's normed input to the output of its output projection. */
export function attentionOps(stage: Stage, layer: Layer, tensor: TensorByName): NecessaryOp[] {
  const { attention } = layer;
  if (attention.kind === 'recurrent') return recurrentOps(stage, layer.index, attention, tensor);
  if (attention.kind === 'grouped') return groupedOps(stage, layer.index, attention, tensor);
  const inner = latentOps(stage, layer.index, attention, tensor);
  return [...inner, linearOp(stage, 'o_proj', [tensor('o_proj')], stage.tokens)];
}

/** Operations from the normed output of a layer's own attention to the output of its cross-attention. */
export function crossOps(
  stage: Stage,
  layer: number,
  cross: GroupedAttention,
  tensor: TensorByName,
): NecessaryOp[] {
  const ops = groupedOps(stage, layer, cross, (name) => tensor(`cross_${name}`));
  return ops.map((op) => ({ ...op, name: `cross_${op.name}` }));
}

/** Keys and values of a stage: tokens of the batch, and cached tokens per sequence. */
interface KeyCounts {
  /** Computed in this layer. */
  computed: number;
  /** Σ over a sequence's queries of the keys that each sees. */
  attended: number;
  /** Read from the cache. */
  read: number;
  /** Written to the cache. */
  written: number;
}

function keyCounts(
  { shape, tokens }: Stage,
  { keys = 'previous', window, chunked, sharedKv }: GroupedAttention,
): KeyCounts {
  const { batchSize, newTokens, source } = shape;
  if (keys === 'all') return { computed: tokens, attended: newTokens ** 2, read: 0, written: 0 };
  if (keys === 'source') {
    const { tokens: length, step } = source!;
    const computed = step === 'cached' ? 0 : batchSize * length;
    return { computed, attended: newTokens * length, read: computed > 0 ? 0 : length, written: computed };
  }
  const computed = sharedKv ? 0 : tokens;
  return {
    computed,
    attended: attendedKeys(shape, window, chunked),
    // Keys that an earlier layer computed in this stage come from the cache too.
    read: cachedKeysRead(shape, window, chunked) + (sharedKv ? newTokens : 0),
    written: computed,
  };
}

function groupedOps(
  stage: Stage,
  layer: number,
  attention: GroupedAttention,
  tensor: TensorByName,
): NecessaryOp[] {
  const { tokens, shape, storage } = stage;
  const { headCount: H, headDim, rotaryDim, qkNorm, sharedKv, outputGate } = attention;
  const { computed, attended, read, written } = keyCounts(stage, attention);
  // Heads with keys and values computed here; the cache may be an earlier layer's.
  const KV = sharedKv ? 0 : attention.kvHeadCount;
  const ops =
    attention.keys === 'source' || sharedKv
      ? [linearOp(stage, 'q_proj', [tensor('q_proj')], tokens)]
      : [linearOp(stage, 'qkv_proj', [tensor('q_proj'), tensor('k_proj'), tensor('v_proj')], tokens)];
  if (attention.keys === 'source' && computed > 0)
    ops.push(linearOp(stage, 'kv_proj', [tensor('k_proj'), tensor('v_proj')], computed));
  if (qkNorm !== 'none') {
    const heads = tokens * (H + KV) * headDim;
    const norms = [tensor('q_norm'), ...(sharedKv ? [] : [tensor('k_norm')])];
    ops.push(
      operation(stage, 'qk_norm', 'norm', layer, heads, heads, {
        weights: norms.reduce((n, weight) => n + tensorBytes(weight, storage.weights), 0),
        parameters: norms.reduce((n, weight) => n + parametersOf(weight), 0),
      }),
    );
  }
  if (rotaryDim > 0) {
    const rotatedElements = tokens * (H + KV) * rotaryDim;
    ops.push(operation(stage, 'rotary', 'elementwise', layer, rotatedElements, rotatedElements));
  }
  // Scores and values: 2·head_dim multiply-adds per query head and key. New keys and values come from the activations
  // and are written to the cache; only earlier ones are read from it.
  const readBytes = kvElementsPerToken({ ...attention, sharedKv: false }) * bytesPerElement[storage.kvCache];
  const inScores = [
    ...(attention.sinks ? [tensor('sinks')] : []),
    ...(attention.positionBias ? [tensor('position_bias')] : []),
  ];
  const inputs = (tokens * H + 2 * computed * KV) * headDim;
  ops.push(
    operation(stage, 'attention', 'attention', layer, inputs, tokens * H * headDim, {
      flops: 4 * H * headDim * shape.batchSize * attended,
      kvRead: shape.batchSize * read * readBytes,
      kvWrite: written * readBytes,
      weights: sum(inScores, (weight) => tensorBytes(weight, storage.weights)),
      parameters: sum(inScores, parametersOf),
    }),
  );
  if (outputGate) {
    const gated = tokens * H * headDim;
    ops.push(operation(stage, 'output_gate', 'elementwise', layer, 2 * gated, gated));
  }
  return [...ops, linearOp(stage, 'o_proj', [tensor('o_proj')], tokens)];
}

/**
 * A recurrence: its state is read and written once per stage, for any number of tokens. FLOPs are those of the
 * recurrent form; the chunked form of a prefill computes more, on tensor cores.
 */
function recurrentOps(
  stage: Stage,
  layer: number,
  mixer: RecurrentMixer,
  tensor: TensorByName,
): NecessaryOp[] {
  const { tokens, shape, storage } = stage;
  const { convChannels, convStateElements, innerSize, inner, inRows } = mixer;
  const stateBytes = Math.max(2, bytesPerElement[storage.kvCache]) * shape.batchSize;
  const isFirst = shape.phase === 'prefill' && shape.contextTokens === 0;
  const weightWork = (name: string, elements: number, flops: number) => ({
    flops: tokens * flops,
    kvRead: isFirst ? 0 : elements * stateBytes,
    kvWrite: elements * stateBytes,
    weights: tensorBytes(tensor(name), storage.weights),
    parameters: parametersOf(tensor(name)),
  });
  const conv = tokens * convChannels;
  const scan = weightWork('scan_parameters', mixer.stateElements, mixer.scanFlops);
  const inputs = tokens * (inRows + (inner ? inner.rank + 2 * inner.stateSize : 0));
  return [
    linearOp(stage, 'in_proj', [tensor('in_proj')], tokens),
    // One filter per channel is not a GEMM.
    operation(stage, 'conv', 'other', layer, conv, conv, weightWork('conv', convStateElements, 0)),
    ...(inner
      ? [
          linearOp(stage, 'x_proj', [tensor('x_proj')], tokens),
          linearOp(stage, 'dt_proj', [tensor('dt_proj')], tokens),
        ]
      : []),
    operation(stage, 'scan', 'attention', layer, inputs, tokens * innerSize, scan),
    linearOp(stage, 'out_proj', [tensor('out_proj')], tokens),
  ];
}

/**
 * MLA (arXiv 2405.04434): at prefill keys and values are expanded from the latent, and attention runs over H heads with
 * nope + rope and value dimensions. At decode the expansion is absorbed into query and output, and attention runs over
 * the cached latent. Each form is the cheaper one for its phase.
 */
function latentOps(
  stage: Stage,
  layer: number,
  attention: LatentAttention,
  tensor: TensorByName,
): NecessaryOp[] {
  const { tokens, shape } = stage;
  const { headCount: H, queryRank, kvRank, ropeDim } = attention;
  const ops: NecessaryOp[] = [];
  if (queryRank === null) {
    ops.push(linearOp(stage, 'q_kv_a_proj', [tensor('q_proj'), tensor('kv_a_proj')], tokens));
  } else {
    ops.push(linearOp(stage, 'q_kv_a_proj', [tensor('q_a_proj'), tensor('kv_a_proj')], tokens));
    ops.push(latentNorm(stage, tensor('q_a_norm'), queryRank));
    ops.push(linearOp(stage, 'q_b_proj', [tensor('q_b_proj')], tokens));
  }
  ops.push(latentNorm(stage, tensor('kv_a_norm'), kvRank));
  const rotatedElements = tokens * (H + 1) * ropeDim;
  ops.push(operation(stage, 'rotary', 'elementwise', layer, rotatedElements, rotatedElements));
  const form = shape.phase === 'prefill' ? expandedOps : absorbedOps;
  return [...ops, ...form(stage, layer, attention, tensor('kv_b_proj'))];
}

function latentNorm(stage: Stage, tensor: Tensor, width: number): NecessaryOp {
  const elements = stage.tokens * width;
  return operation(stage, tensor.name, 'norm', tensor.layer, elements, elements, {
    weights: tensorBytes(tensor, stage.storage.weights),
    parameters: parametersOf(tensor),
  });
}

function expandedOps(
  stage: Stage,
  layer: number,
  { headCount: H, kvRank, nopeDim, ropeDim, valueDim }: LatentAttention,
  kvB: Tensor,
): NecessaryOp[] {
  const { tokens, shape, storage } = stage;
  const kvBytes = bytesPerElement[storage.kvCache];
  const cached = shape.batchSize * shape.contextTokens;
  // Tokens cached by an earlier chunk are expanded again from the latent in the cache.
  const expand = linearOp(stage, 'kv_b_proj', [kvB], tokens + cached);
  expand.bytes.activations_in = tokens * kvRank * bytesPerElement[storage.activations];
  expand.bytes.kv_read = cached * kvRank * kvBytes;
  const queries = tokens * H * (nopeDim + ropeDim);
  const keysAndValues = (tokens + cached) * H * (nopeDim + valueDim) + tokens * ropeDim;
  return [
    expand,
    operation(stage, 'attention', 'attention', layer, queries + keysAndValues, tokens * H * valueDim, {
      flops: 2 * H * (nopeDim + ropeDim + valueDim) * shape.batchSize * attendedKeys(shape, null),
      kvRead: cached * ropeDim * kvBytes,
      kvWrite: tokens * (kvRank + ropeDim) * kvBytes,
    }),
  ];
}

function absorbedOps(
  stage: Stage,
  layer: number,
  { headCount: H, kvRank, nopeDim, ropeDim, valueDim }: LatentAttention,
  kvB: Tensor,
): NecessaryOp[] {
  const { tokens, shape, storage } = stage;
  const latent = kvRank + ropeDim;
  const kvBytes = latent * bytesPerElement[storage.kvCache];
  const weights = tensorBytes(kvB, storage.weights);
  // kv_b_proj has both halves: the keys' (nope) part goes into the query, the values' part into the output.
  const half = (name: string, dim: number, k: number, n: number): NecessaryOp =>
    operation(stage, name, 'gemm', layer, tokens * H * k, tokens * H * n, {
      flops: 2 * tokens * H * k * n,
      weights: (weights * dim) / (nopeDim + valueDim),
      parameters: H * dim * kvRank,
      gemm: { m: tokens, n, k, batch: H },
    });
  return [
    half('q_absorb', nopeDim, nopeDim, kvRank),
    operation(stage, 'attention', 'attention', layer, tokens * (H * latent + latent), tokens * H * kvRank, {
      flops: 2 * H * (latent + kvRank) * shape.batchSize * attendedKeys(shape, null),
      kvRead: shape.batchSize * cachedKeysRead(shape, null) * kvBytes,
      kvWrite: tokens * kvBytes,
    }),
    half('v_up', valueDim, kvRank, valueDim),
  ];
}
