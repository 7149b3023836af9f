import type { OpClass } from '../model/classes.js';

/** Labels of classes of kernels and operators; the same on every surface. */
export const classLabels: Record<OpClass, string> = {
  gemm: 'GEMM',
  attention: 'attention',
  norm: 'norm',
  elementwise: 'elementwise',
  copy: 'copy',
  embedding: 'embedding/gather',
  moe_routing: 'MoE routing',
  sampling: 'sampling',
  communication: 'communication',
  quantization: 'quantization',
  graph: 'CUDA graph (opaque)',
  other: 'other',
};

export const classMeanings: Record<OpClass, string> = {
  gemm: 'matrix multiplications (GEMMs), including grouped and quantized ones',
  attention: 'scores, softmax and values, fused or in parts, and kernels used only by them',
  norm: 'RMSNorm, LayerNorm and their fused forms',
  elementwise: 'activations, additions, casts within arithmetic, rotary embedding',
  copy: 'copies between layouts or types, concatenation, scatter',
  embedding: 'lookup of token embeddings, other gathers of rows',
  moe_routing: 'mixture of experts: choosing experts, sorting tokens by them, summing their results',
  sampling: 'choosing the next token: softmax over the vocabulary, top-k, argmax',
  communication: 'collectives and exchange between devices',
  quantization: 'quantizing and dequantizing',
  graph: 'a CUDA graph recorded as one row: its kernels are unknown',
  other: 'not classified by name or operator',
};

/** Label of a class; "all kernels" if classes are not distinguished. */
export const classLabel = (id: string): string =>
  id === 'kernels' ? 'all kernels' : ((classLabels as Readonly<Record<string, string>>)[id] ?? id);

/** "layer 3"; null: embedding, final norm, lm_head. */
export const layerText = (layer: number | null): string =>
  layer === null ? 'outside layers' : `layer ${layer}`;
