import type { OpClass } from '../model/classes.js';
import { bytesPerElement, type DType } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import type { StageShape } from './shape.js';
import { isQuantizable, tensorBytes, type Storage } from './storage.js';
import { parametersOf, type Tensor } from './tensors.js';

/** Minimum memory traffic of any implementation, by kind. */
export interface OpBytes {
  weights: number;
  kv_read: number;
  kv_write: number;
  activations_in: number;
  activations_out: number;
}

/**
 * out[m, n] = in[m, k] · W[k, n], `batch` times (experts: the expected number of distinct ones, with m expected tokens
 * each).
 */
interface GemmShape {
  m: number;
  n: number;
  k: number;
  batch: number;
}

/**
 * An operation that every run of the model needs. `flops` counts only matrix multiplications (2 per multiply-add):
 * norms, softmax, rotary and activations add under a percent, and MFU excludes them by convention.
 */
export interface NecessaryOp {
  name: string;
  class: OpClass;
  /** Decoder layer; null outside the layers. */
  layer: number | null;
  /** dtype of the computation. */
  dtype: DType;
  flops: number;
  bytes: OpBytes;
  /** Parameters of its weights, with all experts; a tied lm_head has only its bias. */
  parameters: number;
  gemm: GemmShape | null;
}

/** Inputs shared by the builders of a stage's operations. */
export interface Stage {
  a: Architecture;
  shape: StageShape;
  storage: Storage;
  /** New tokens of the whole batch. */
  tokens: number;
}

interface OpFields {
  dtype?: DType;
  flops?: number;
  weights?: number;
  kvRead?: number;
  kvWrite?: number;
  parameters?: number;
  gemm?: GemmShape;
}

/** An operation that reads `inElements` and writes `outElements` of the activations' dtype. */
export function operation(
  stage: Stage,
  name: string,
  opClass: OpClass,
  layer: number | null,
  inElements: number,
  outElements: number,
  fields: OpFields = {},
): NecessaryOp {
  const { activations } = stage.storage;
  return {
    name,
    class: opClass,
    layer,
    dtype: fields.dtype ?? activations,
    flops: fields.flops ?? 0,
    bytes: {
      weights: fields.weights ?? 0,
      kv_read: fields.kvRead ?? 0,
      kv_write: fields.kvWrite ?? 0,
      activations_in: inElements * bytesPerElement[activations],
      activations_out: outElements * bytesPerElement[activations],
    },
    parameters: fields.parameters ?? 0,
    gemm: fields.gemm ?? null,
  };
}

/** Linear layers with the same input (q, k, v; gate, up), run as one: `rows` tokens, each tensor's weights once. */
export function linearOp(stage: Stage, name: string, tensors: Tensor[], rows: number): NecessaryOp {
  const first = tensors[0];
  if (!first) throw new Error(`${name}: a linear operation needs a tensor`);
  const k = first.columns;
  const n = sum(tensors, (tensor) => tensor.rows);
  return operation(stage, name, 'gemm', first.layer, rows * k, rows * n, {
    dtype: linearDType(stage, first),
    flops: 2 * rows * n * k,
    weights: sum(tensors, (tensor) => tensorBytes(tensor, stage.storage.weights)),
    parameters: sum(tensors, parametersOf),
    gemm: { m: rows, n, k, batch: 1 },
  });
}

/** dtype of a linear layer's computation: the weight format's for quantized layers, else that of the activations. */
export function linearDType({ storage }: Stage, tensor: Tensor): DType {
  const quantized =
    isQuantizable(tensor, storage.weights) ||
    (tensor.component === 'lm_head' && storage.weights.lmHead.scale !== null);
  return (quantized ? storage.weights.compute : null) ?? storage.activations;
}

/** A norm over `rows` vectors, fused with the neighboring additions: `reads` and `writes` count vectors per row. */
export function normOp(
  stage: Stage,
  tensor: Tensor,
  rows: number,
  reads: number,
  writes: number,
): NecessaryOp {
  return operation(
    stage,
    tensor.name,
    'norm',
    tensor.layer,
    rows * reads * tensor.rows,
    rows * writes * tensor.rows,
    {
      weights: tensorBytes(tensor, stage.storage.weights),
      parameters: parametersOf(tensor),
    },
  );
}

export function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}
