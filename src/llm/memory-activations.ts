import { bytesPerElement, type DType } from '../model/dtype.js';
import type { Architecture, Layer } from './architecture.js';
import type { ResolvedRequest } from './memory-request.js';

export interface TransientBytes {
  bytes: number;
  /** Where in a layer the peak is. */
  at: string;
  formula: string;
}

interface Step {
  /** Layers of different structure, each once. */
  kinds: readonly Layer[];
  activations: DType;
  /** Sequences computed on this device. */
  sequences: number;
  newTokens: number;
  contextTokens: number;
  tensor: number;
  request: ResolvedRequest;
}

/**
 * Peak of what one step of transformers holds beside weights and cache, from the order in which its modelling classes
 * (5.17, Llama's and those built like it) make and drop tensors, for N = sequences × new tokens, b bytes an element:
 * - Always live: the embedding's output and the layer's input, 2·D.
 * - Norm: RMSNorm works in float32 and keeps two copies: 8 B·D beside the residual.
 * - Attention: normed input, query, its rotation (three more of it), key and value: D + 4·H·hd + 2·KV·hd.
 *   Unfused: scores in float32 and in b, B·H·T·C, and K and V repeated for all heads.
 * - MLP: residual, normed input, activated gate, up, their product: 2·D + 3·I; without a gate 2·D + 2·I, 4·I where gelu is
 *   written out (GPT-2, Phi). Experts (grouped_mm): each token k times, max(D + 4·MI, 4·D).
 * - Logits of the last token of each sequence: V·b.
 */
export function transformersStep(a: Architecture, step: Step): TransientBytes {
  const { sequences, newTokens, activations } = step;
  const tokens = sequences * newTokens;
  const b = bytesPerElement[activations];
  const live = 2 * a.hiddenSize;
  const parts: TransientBytes[] = [
    {
      bytes: sequences * a.vocabSize * b + tokens * a.hiddenSize * b,
      at: 'logits',
      formula: 'B·V·b + N·D·b',
    },
  ];
  if (a.norm === 'rmsnorm') {
    parts.push({
      bytes: tokens * ((live + a.hiddenSize) * b + 8 * a.hiddenSize),
      at: 'norm',
      formula: 'N·(3·D·b + 8·D): RMSNorm in float32',
    });
  }
  for (const layer of step.kinds) parts.push(attentionPart(layer, step, live), mlpPart(a, layer, step, live));
  return parts.reduce((most, part) => (part.bytes > most.bytes ? part : most));
}

function attentionPart({ attention }: Layer, step: Step, live: number): TransientBytes {
  const { sequences, newTokens, contextTokens, tensor, activations, request } = step;
  const b = bytesPerElement[activations];
  const tokens = sequences * newTokens;
  const heads = attention.headCount / tensor;
  const length = contextTokens + newTokens;
  if (attention.kind === 'latent') {
    // The projected query and its rotated copy; keys and values of the whole cache are made from it, keys once more with
    // their rotated part.
    const { nopeDim, ropeDim, valueDim } = attention;
    const query = heads * (nopeDim + ropeDim);
    const expanded = sequences * length * b * heads * (2 * nopeDim + ropeDim + valueDim);
    const scores = request.attention === 'fused' ? 0 : sequences * heads * newTokens * length * (b + 4);
    return {
      bytes: tokens * b * (1.5 * live + 2 * query) + expanded + scores,
      at: 'attention',
      formula: `N·b·(3·D + 2·H·(nope + rope)) + B·C·b·H·(2·nope + rope + v)${scores > 0 ? ' + B·H·T·C·(b + 4)' : ''}`,
    };
  }
  const query = heads * attention.headDim;
  const keyValue = 2 * Math.max(1, attention.kvHeadCount / tensor) * attention.headDim;
  const own = tokens * b * (1.5 * live + 4 * query + keyValue);
  if (request.attention === 'fused') {
    return { bytes: own, at: 'attention', formula: 'N·b·(3·D + 4·H·hd + 2·KV·hd)' };
  }
  const scores = sequences * heads * newTokens * length;
  return {
    bytes: own + scores * (b + 4) + sequences * length * b * 2 * query,
    at: 'attention',
    formula: 'N·b·(3·D + 4·H·hd + 2·KV·hd) + B·H·T·C·(b + 4) + 2·B·C·H·hd·b',
  };
}

function mlpPart(a: Architecture, { mlp }: Layer, step: Step, live: number): TransientBytes {
  const { sequences, newTokens, tensor, activations } = step;
  const b = bytesPerElement[activations];
  const tokens = sequences * newTokens;
  const D = a.hiddenSize;
  if (mlp.kind === 'dense') {
    const writtenOut = a.family === 'GPT-2' || a.family === 'Phi';
    const copies = mlp.gated ? 3 : writtenOut ? 4 : 2;
    return {
      bytes: tokens * b * (live + 2 * D + (copies * mlp.intermediateSize) / tensor),
      at: 'mlp',
      formula: `N·b·(4·D + ${copies}·I)`,
    };
  }
  const expert = Math.max(D + (4 * mlp.intermediateSize) / tensor, 4 * D);
  const shared = (3 * mlp.sharedIntermediateSize) / tensor;
  return {
    bytes: tokens * b * (live + 2 * D + Math.max(mlp.expertsPerToken * expert, shared)),
    at: 'experts',
    formula: 'N·b·(4·D + k·max(D + 4·MI, 4·D))',
  };
}
