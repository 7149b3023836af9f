import type { Architecture } from './architecture.js';
import { allTensors, components, layerTensors, lmHead, parametersOf, type Component } from './tensors.js';

interface LayerParameters {
  layer: number;
  total: number;
  /** Parameters used per token: routed experts count expertsPerToken times. */
  active: number;
  by_component: Partial<Record<Component, number>>;
}

interface ParameterCount {
  total: number;
  /** Parameters used per token, including embeddings and lm_head, like published "active parameters". */
  active: number;
  /** Token embedding table. */
  embedding: number;
  /** Untied output projection; 0 if tied, because it counts under embedding. */
  lm_head: number;
  /**
   * Weights multiplied per token: active linear layers and the lm_head (tied or not), without biases. 2 × this = FLOPs.
   */
  active_matmul: number;
  by_component: Record<Component, number>;
  per_layer: LayerParameters[];
}

/**
 * Exact parameter counts. A tied lm_head counts once. Router biases that only affect the choice of experts (DeepSeek
 * V3) count, as in the published total; multi-token-prediction modules and quantization scales do not.
 */
export function countParameters(a: Architecture): ParameterCount {
  const by_component = emptyComponents();
  let total = 0;
  let active = 0;
  let active_matmul = 0;
  for (const tensor of allTensors(a)) {
    const size = parametersOf(tensor);
    by_component[tensor.component] += size * tensor.count;
    total += size * tensor.count;
    active += size * tensor.active;
    // A vision tower multiplies patches of images, not tokens.
    if (tensor.kind === 'linear' && tensor.component !== 'vision')
      active_matmul += tensor.rows * tensor.columns * tensor.active;
  }
  if (a.tiedEmbeddings) {
    const tied = lmHead(a);
    active_matmul += tied.rows * tied.columns;
    // A bias belongs to the lm_head even if the matrix is shared.
    by_component.lm_head += tied.bias;
    total += tied.bias;
    active += tied.bias;
  }
  return {
    total,
    active,
    embedding: by_component.embedding,
    lm_head: by_component.lm_head,
    active_matmul,
    by_component,
    per_layer: a.layers.map((layer) => {
      const row: LayerParameters = { layer: layer.index, total: 0, active: 0, by_component: {} };
      for (const tensor of layerTensors(a, layer)) {
        const size = parametersOf(tensor);
        row.total += size * tensor.count;
        row.active += size * tensor.active;
        row.by_component[tensor.component] = (row.by_component[tensor.component] ?? 0) + size * tensor.count;
      }
      return row;
    }),
  };
}

function emptyComponents(): Record<Component, number> {
  const zero = {} as Record<Component, number>;
  for (const c of components) zero[c] = 0;
  return zero;
}
