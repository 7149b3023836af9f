import type { OpClass } from '../model/classes.js';
import { bytesPerElement, type DType } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import type { StageShape } from './shape.js';
import { isQuantizable, tensorBytes, type Storage } from './storage.js';
import { parametersOf, type Tensor } from './tensors.js';

/** Memory traffic no implementation can do without, by what is moved. */
export interface OpBytes {
  weights: number;
  kv_read: number;
  kv_write: number;
  activations_in: number;
  activations_out: number;
}

/** out[m, n] = in[m, k] · W[k, n], `batch` times (experts: expected distinct ones, m the expected tokens of each). */
interface GemmShape {
  m: number;
  n: number;
  k: number;
  batch: number;
}

/**
 * An operation that the model cannot be run without. `flops` counts matrix multiplications only (2 a multiply-add): what
 * norms, softmax, rotary and activations add is under a percent, and MFU by convention leaves it out.
 */
export interface NecessaryOp {
  name: string;
  class: OpClass;
  /** Decoder layer; null outside the layers. */
  layer: number | null;
  /** What it computes in. */
  dtype: DType;
  flops: number;
  bytes: OpBytes;
  /** Parameters held by its weights, all experts counted; a tied lm_head has none of its own but its bias. */
  parameters: number;
  gemm: GemmShape | null;
}

/** What the builders of a stage's operations share. */
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

/** Linear layers that read the same input (q, k, v; gate, up), run as one: `rows` tokens, each tensor's weights once. */
export function linearOp(stage: Stage, name: string, tensors: Tensor[], rows: number): NecessaryOp {
  const first = tensors[0];
  if (!first) throw new Error(`${name}: a linear operation needs a tensor`);
  const k = first.columns;
  const n = sum(tensors, (t) => t.rows);
  return operation(stage, name, 'gemm', first.layer, rows * k, rows * n, {
    dtype: linearDType(stage, first),
    flops: 2 * rows * n * k,
    weights: sum(tensors, (t) => tensorBytes(t, stage.storage.weights)),
    parameters: sum(tensors, parametersOf),
    gemm: { m: rows, n, k, batch: 1 },
  });
}

/** What a linear layer computes in: the weight format's choice for quantized layers, else the activations' dtype. */
export function linearDType({ storage }: Stage, t: Tensor): DType {
  const quantized =
    isQuantizable(t, storage.weights) || (t.component === 'lm_head' && storage.weights.lmHead.scale !== null);
  return (quantized ? storage.weights.compute : null) ?? storage.activations;
}

/** A norm over `rows` vectors, fused with the additions around it: `reads` and `writes` count the vectors moved a row. */
export function normOp(stage: Stage, t: Tensor, rows: number, reads: number, writes: number): NecessaryOp {
  return operation(stage, t.name, 'norm', t.layer, rows * reads * t.rows, rows * writes * t.rows, {
    weights: tensorBytes(t, stage.storage.weights),
    parameters: parametersOf(t),
  });
}

export function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
