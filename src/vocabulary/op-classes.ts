import type { OpClass } from '../model/classes.js';

/** Labels of classes of kernels and operators; the same on every surface. */
export const classLabels: Record<OpClass, string> = {
  gemm: 'GEMM',
  attention: 'attention',
  norm: 'norm',
  elementwise: 'elementwise',
  copy: 'copy',
  embedding: 'embedding',
  moe_routing: 'MoE routing',
  sampling: 'sampling',
  communication: 'communication',
  quantization: 'quantisation',
  graph: 'CUDA graph (opaque)',
  other: 'other',
};

/** "layer 3"; null: embedding, final norm, lm_head. */
export const layerText = (layer: number | null): string =>
  layer === null ? 'outside layers' : `layer ${layer}`;
