import { bytesPerElement, type DType } from '../model/dtype.js';
import type { Architecture, Layer } from './architecture.js';
import { allTensors, lmHead, type Component, type Tensor } from './tensors.js';

/**
 * How a matrix is stored: `bytesPerWeight` for each weight and, per tile of rows × columns (the weights of one scale),
 * `bytes` of scale and zero point. A tile of columns Infinity spans the row.
 */
export interface BlockFormat {
  bytesPerWeight: number;
  scale: { rows: number; columns: number; bytes: number } | null;
  /** Bytes of a scale for the whole matrix (NVFP4). */
  matrixBytes?: number;
}

/** How a model's weights are stored, and the dtype its linear layers compute in. */
export interface WeightFormat {
  name: string;
  /** Linear layers inside the decoder layers: attention, MLP, experts. */
  linear: BlockFormat;
  lmHead: BlockFormat;
  /** Token embedding; a tied lm_head reads this one. */
  embedding: BlockFormat;
  /** Norms, biases, routers, position tables. */
  rest: DType;
  /** null: linear layers compute in the activations' dtype (weight-only quantization). */
  compute: DType | null;
  /** Linear layers that the checkpoint stores in `rest`. */
  unquantizedComponents?: readonly Component[];
}

/** dtypes and formats that determine a stage's bytes. */
export interface Storage {
  weights: WeightFormat;
  activations: DType;
  kvCache: DType;
  /** dtype in which a matrix is loaded before the engine quantizes it. */
  loadedIn?: DType;
}

export function unquantized(dtype: DType): BlockFormat {
  return { bytesPerWeight: bytesPerElement[dtype], scale: null };
}

/** One scale per `columns` weights of a row. */
export function blocks(bytesPerWeight: number, columns: number, bytes: number): BlockFormat {
  return { bytesPerWeight, scale: { rows: 1, columns, bytes } };
}

/** Everything in one dtype, like float checkpoints. */
export function floatStorage(dtype: DType, kvCache: DType = dtype): Storage {
  const format = unquantized(dtype);
  return {
    weights: { name: dtype, linear: format, lmHead: format, embedding: format, rest: dtype, compute: null },
    activations: dtype,
    kvCache,
  };
}

/** Bytes of a [rows, columns] matrix, including scales; incomplete tiles have a whole scale. */
export function matrixBytes(format: BlockFormat, rows: number, columns: number): number {
  const weights = rows * columns * format.bytesPerWeight;
  if (!format.scale) return weights;
  const across = format.scale.columns === Infinity ? 1 : Math.ceil(columns / format.scale.columns);
  return (
    weights + Math.ceil(rows / format.scale.rows) * across * format.scale.bytes + (format.matrixBytes ?? 0)
  );
}

/** Mean bytes per weight of a large matrix, including scales. */
export function averageBytesPerWeight({ bytesPerWeight, scale }: BlockFormat): number {
  return bytesPerWeight + (scale ? scale.bytes / (scale.rows * scale.columns) : 0);
}

/** The storage of a matrix under a format. */
export function formatOf(tensor: Tensor, weights: WeightFormat): BlockFormat {
  if (tensor.component === 'lm_head') return weights.lmHead;
  if (tensor.component === 'embedding') return weights.embedding;
  return isQuantizable(tensor, weights) ? weights.linear : unquantized(weights.rest);
}

/**
 * Linear layers of the decoder, except those that every scheme excludes (routers, one-row gates) or that this one
 * excludes.
 */
export function isQuantizable(
  tensor: Tensor,
  { unquantizedComponents = [] }: Pick<WeightFormat, 'unquantizedComponents'>,
): boolean {
  if (unquantizedComponents.includes(tensor.component)) return false;
  const inLayer =
    tensor.component === 'attention' || tensor.component === 'mlp' || tensor.component === 'experts';
  return tensor.kind === 'linear' && (inLayer || (tensor.component === 'shared_experts' && tensor.rows > 1));
}

/** Bytes of one copy of a tensor, its bias included. */
export function tensorBytes(tensor: Tensor, weights: WeightFormat): number {
  return (
    matrixBytes(formatOf(tensor, weights), tensor.rows, tensor.columns) +
    tensor.bias * bytesPerElement[weights.rest]
  );
}

interface WeightBytes {
  /** Linear layers of the decoder layers, scales included. */
  linear: number;
  embedding: number;
  /** 0 when tied. */
  lm_head: number;
  /** Norms, biases, routers, positions. */
  rest: number;
  total: number;
}

/**
 * Bytes of the weights in memory, each stored once (a tied lm_head is the embedding). Engines that also store rotary
 * tables add `rotaryTableBytes`.
 */
export function weightBytes(a: Architecture, storage: Pick<Storage, 'weights'>): WeightBytes {
  const { weights } = storage;
  const sum: WeightBytes = { linear: 0, embedding: 0, lm_head: 0, rest: 0, total: 0 };
  for (const tensor of allTensors(a)) {
    const bytes = tensorBytes(tensor, weights) * tensor.count;
    sum.total += bytes;
    if (tensor.component === 'embedding') sum.embedding += bytes;
    else if (tensor.component === 'lm_head') sum.lm_head += bytes;
    else if (isQuantizable(tensor, weights)) sum.linear += bytes;
    else sum.rest += bytes;
  }
  if (a.tiedEmbeddings) {
    const bias = lmHead(a).bias * bytesPerElement[weights.rest];
    sum.lm_head += bias;
    sum.total += bias;
  }
  return sum;
}

/** Rotated dimensions of a head; 0 without rotary positions. */
export function rotaryDimOf(attention: Layer['attention']): number {
  if (attention.kind === 'recurrent') return 0;
  return attention.kind === 'latent' ? attention.ropeDim : attention.rotaryDim;
}

/**
 * The cos/sin table that vLLM stores: max positions × rotary dimension, 2 bytes each. Null if the config does not state
 * the number of positions; 0 with learned positions.
 */
export function rotaryTableBytes(a: Architecture, bytes = 2): number | null {
  const dim = Math.max(0, ...a.layers.map(({ attention }) => rotaryDimOf(attention)));
  if (dim === 0) return 0;
  return a.maxPositions === null ? null : a.maxPositions * dim * bytes;
}
