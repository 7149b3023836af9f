import type { Architecture, Layer } from './architecture.js';
import { attentionTensors } from './memory-forward-attention.js';
import { mlpTensors } from './memory-forward-mlp.js';
import { isMasked, keysOf, normTensors, type Forward } from './memory-forward-parts.js';
import { rotaryDimOf } from './storage.js';
import { freeAll, replaceBlock, type TensorMemory } from './memory-tensors.js';

/**
 * Tensors of one forward pass of transformers (5.17), in the order in which its modeling classes make and drop them,
 * without small ones (positions, the router's indices). The order comes from those classes with every allocation
 * recorded on torch's meta device. Peak and reserve computed from it match an H200 to a few MiB
 * (memory-reserve.test.ts).
 * @returns the logits of the last token of each sequence
 */
export function forwardTensors<B>(forward: Forward<B>, layers: readonly Layer[]): B {
  const { memory, enter, a, b, sequences, newTokens } = forward;
  const tokens = sequences * newTokens;
  const D = tokens * a.hiddenSize * b;
  const hasPositionTable = a.positionRows > 0;
  enter('norm');
  const embedding = memory.malloc(D);
  // Gemma scales the embedding.
  const embeds = a.family.startsWith('Gemma') ? replaceBlock(memory, embedding, D) : embedding;
  // OPT looks positions up per sequence, GPT-2 once; both keep the embedding in addition to the sum.
  const keptTensors = hasPositionTable ? [memory.malloc(a.family === 'OPT' ? D : D / sequences)] : [];
  const first = hasPositionTable ? memory.malloc(D) : embeds;
  keptTensors.push(...maskTensors(forward, layers), ...rotaryTables(forward, layers));
  let hidden = first;
  for (const [index, layer] of layers.entries()) {
    const next = layerTensors(forward, layer, index);
    // The embedding is the first layer's input and stays referenced.
    if (index > 0 || hasPositionTable) memory.free(hidden);
    hidden = next;
  }
  enter('norm');
  const last = normTensors(forward, tokens * a.hiddenSize);
  if (layers.length > 0) memory.free(hidden);
  memory.free(embeds);
  freeAll(memory, keptTensors);
  enter('logits');
  const bytes = sequences * a.vocabSize * b;
  let logits = memory.malloc(bytes);
  // A bias or a soft cap adds operations, one after the other.
  if (a.lmHeadBias || a.family === 'Gemma 2') logits = replaceBlock(memory, logits, bytes);
  memory.free(last);
  return logits;
}

/** One mask per kind of layer: boolean, or for unfused attention numbers per sequence. */
function maskTensors<B>(forward: Forward<B>, layers: readonly Layer[]): B[] {
  const { memory, b, sequences, newTokens, attention } = forward;
  const sizes = new Map<number | null, number>();
  for (const layer of layers) {
    if (isMasked(forward, layer)) sizes.set(layer.attention.window, newTokens * keysOf(forward, layer));
  }
  return [...sizes.values()].map((places) => {
    const booleans = memory.malloc(places);
    return attention === 'eager' ? replaceBlock(memory, booleans, sequences * places * b) : booleans;
  });
}

export const hasRotaryTables = (a: Architecture, layers: readonly Layer[]): boolean =>
  a.positionRows === 0 && layers.some(({ attention }) => rotaryDimOf(attention) > 0);

/** Cosines and sines; Gemma 3 has a second pair for its windowed layers. */
function rotaryTables<B>(forward: Forward<B>, layers: readonly Layer[]): B[] {
  const { memory, a, b, newTokens } = forward;
  if (!hasRotaryTables(a, layers)) return [];
  const width = Math.max(
    0,
    ...layers.map(({ attention }) => rotaryDimOf(attention) * (attention.kind === 'latent' ? 4 / b : 1)),
  );
  const pairs = a.family === 'Gemma 3' ? 2 : 1;
  return Array.from({ length: 2 * pairs }, () => memory.malloc(newTokens * width * b));
}

function layerTensors<B>(forward: Forward<B>, layer: Layer, index: number): B {
  const { memory, enter, a, b, sequences, newTokens, cache } = forward;
  const elements = sequences * newTokens * a.hiddenSize;
  const D = elements * b;
  const hasPostNorms = a.norms === 'sandwich';
  enter('norm');
  const normed = normTensors(forward, elements);
  enter(layer.attention.kind === 'recurrent' ? 'recurrence' : 'attention');
  const attention = attentionTensors(forward, layer, cache.layers[index] ?? null);
  cache.layers[index] = attention.cached;
  let attended = attention.output;
  if (layer.mlp.kind === 'none') {
    memory.free(normed);
    const output = memory.malloc(D);
    memory.free(attended);
    return output;
  }
  if (a.norms === 'parallel' || a.norms === 'parallel-two') {
    // Attention and MLP side by side, from the same norm.
    const mlpOutput = mlpTensors(forward, layer);
    const sum = memory.malloc(D);
    const output = memory.malloc(D);
    freeAll(memory, [sum, normed, attended, mlpOutput, ...attention.weights]);
    return output;
  }
  memory.free(normed);
  if (hasPostNorms) {
    enter('norm');
    attended = replaceWith(memory, attended, normTensors(forward, elements));
  }
  const middle = memory.malloc(D);
  // GPT-2's block references its attention's output, and the input of its MLP, until the end.
  const keepsReferences = a.family === 'GPT-2';
  if (!keepsReferences) memory.free(attended);
  enter('norm');
  const mlpInput = normTensors(forward, elements);
  let mlpOutput = keepsReferences ? mlpTensors(forward, layer) : mlpTensors(forward, layer, mlpInput);
  if (hasPostNorms) {
    enter('norm');
    mlpOutput = replaceWith(memory, mlpOutput, normTensors(forward, elements));
  }
  const output = memory.malloc(D);
  freeAll(memory, keepsReferences ? [mlpInput, middle, attended, mlpOutput] : [mlpOutput, middle]);
  freeAll(memory, attention.weights);
  return output;
}

function replaceWith<B>(memory: TensorMemory<B>, old: B, next: B): B {
  memory.free(old);
  return next;
}
