import type { Layer, MoeMlp } from './architecture.js';
import type { Forward } from './memory-forward-parts.js';
import { freeAll, replaceBlock, type TensorMemory } from './memory-tensors.js';

/**
 * The MLP of one layer.
 * @param normed its input, freed when the layer no longer references it
 */
export function mlpTensors<B>(forward: Forward<B>, { mlp }: Layer, normed?: B): B {
  const { memory, enter, a, b, sequences, newTokens, tensor } = forward;
  const tokens = sequences * newTokens;
  const D = tokens * a.hiddenSize * b;
  if (mlp.kind === 'moe') {
    enter('experts');
    const output = expertTensors(forward, mlp, tokens);
    if (normed !== undefined) memory.free(normed);
    return output;
  }
  enter('mlp');
  if (mlp.kind === 'none') throw new Error('a layer without an MLP has no MLP tensors');
  const inner = (tokens * mlp.intermediateSize * b) / tensor;
  if (mlp.gated) {
    const output = a.family === 'Phi-3' ? fusedGatedMlp(memory, inner, D) : gatedMlp(memory, inner, D);
    if (normed !== undefined) memory.free(normed);
    return output;
  }
  const first = memory.malloc(inner);
  // OPT's layer has no MLP module that would reference its input.
  const freesInput = a.family === 'OPT' && normed !== undefined;
  if (freesInput) memory.free(normed);
  const active =
    a.family === 'GPT-2' || a.family === 'Phi'
      ? gelu(memory, first, inner)
      : replaceBlock(memory, first, inner);
  const output = memory.malloc(D);
  memory.free(active);
  if (!freesInput && normed !== undefined) memory.free(normed);
  return output;
}

/** down(act(gate(x))·up(x)) */
function gatedMlp<B>(memory: TensorMemory<B>, inner: number, D: number): B {
  const active = replaceBlock(memory, memory.malloc(inner), inner);
  const up = memory.malloc(inner);
  const product = memory.malloc(inner);
  freeAll(memory, [active, up]);
  const output = memory.malloc(D);
  memory.free(product);
  return output;
}

/** Phi-3 has one matrix for gate and up, with views for the two. */
function fusedGatedMlp<B>(memory: TensorMemory<B>, inner: number, D: number): B {
  const gateAndUp = memory.malloc(2 * inner);
  const product = replaceBlock(memory, memory.malloc(inner), inner);
  const output = memory.malloc(D);
  freeAll(memory, [product, gateAndUp]);
  return output;
}

/** 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), operation by operation. */
function gelu<B>(memory: TensorMemory<B>, x: B, inner: number): B {
  const half = memory.malloc(inner);
  let polynomial = memory.malloc(inner);
  for (let step = 0; step < 5; step += 1) polynomial = replaceBlock(memory, polynomial, inner);
  const output = memory.malloc(inner);
  freeAll(memory, [half, polynomial, x]);
  return output;
}

/** Families with a float32 router, so that weighted outputs are float32 too. */
const routesInFloat32 = new Set(['Mixtral', 'DeepSeek V2', 'DeepSeek V3']);

/**
 * grouped_mm over the tokens sorted by expert, once per routed expert; shared experts run before (Qwen2-MoE) or after
 * it (DeepSeek).
 */
function expertTensors<B>(forward: Forward<B>, mlp: MoeMlp, tokens: number): B {
  const { memory, a, b, tensor } = forward;
  const D = tokens * a.hiddenSize * b;
  const shared = (tokens * mlp.sharedIntermediateSize * b) / tensor;
  const before = mlp.sharedGate && shared > 0 ? [gatedMlp(memory, shared, D)] : [];
  const router = routerTensors(forward, mlp, tokens);
  let output = routedExperts(forward, mlp, tokens);
  if (before.length > 0) {
    // sigmoid(gate)·shared
    const scaled = memory.malloc(D);
    freeAll(memory, before);
    const sum = memory.malloc(D);
    freeAll(memory, [output, scaled]);
    output = sum;
  } else if (shared > 0) {
    const after = gatedMlp(memory, shared, D);
    const sum = memory.malloc(D);
    freeAll(memory, [after, output]);
    output = sum;
  }
  memory.free(router);
  return output;
}

/** The router's logits stay referenced; DeepSeek's converts its input and matrix to float32. */
function routerTensors<B>({ memory, a, b }: Forward<B>, { expertCount }: MoeMlp, tokens: number): B {
  const isWide = a.family.startsWith('DeepSeek');
  const wide = isWide
    ? [memory.malloc(tokens * a.hiddenSize * 4), memory.malloc(expertCount * a.hiddenSize * 4)]
    : [];
  const logits = memory.malloc(tokens * expertCount * (isWide ? 4 : b));
  freeAll(memory, wide);
  const float = isWide || b === 4 ? [] : [memory.malloc(tokens * expertCount * 4)];
  const probabilities = memory.malloc(tokens * expertCount * 4);
  freeAll(memory, [...float, probabilities]);
  return logits;
}

function routedExperts<B>({ memory, a, b, tensor }: Forward<B>, mlp: MoeMlp, tokens: number): B {
  const rows = mlp.expertsPerToken * tokens;
  const inner = (rows * mlp.intermediateSize * b) / tensor;
  const outer = rows * a.hiddenSize;
  const weightedBytes = routesInFloat32.has(a.family) ? 4 : b;
  const selected = memory.malloc(outer * b);
  // Masked out of place after each GEMM.
  const gateAndUp = replaceBlock(memory, memory.malloc(2 * inner), 2 * inner);
  const active = memory.malloc(inner);
  const product = memory.malloc(inner);
  freeAll(memory, [active, gateAndUp]);
  const down = memory.malloc(outer * b);
  memory.free(product);
  const masked = replaceBlock(memory, down, outer * b);
  const ordered = replaceBlock(memory, memory.malloc(outer * weightedBytes), outer * weightedBytes);
  const sum = memory.malloc(tokens * a.hiddenSize * weightedBytes);
  const narrow = weightedBytes > b ? [memory.malloc(tokens * a.hiddenSize * b)] : [];
  freeAll(memory, [selected, masked, ordered]);
  if (narrow.length > 0) memory.free(sum);
  return narrow[0] ?? sum;
}
