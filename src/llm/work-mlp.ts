import type { DenseMlp, Layer, MoeMlp } from './architecture.js';
import { linearDType, linearOp, operation, sum, type NecessaryOp, type Stage } from './necessary-op.js';
import { tensorBytes } from './storage.js';
import { parametersOf, type Tensor } from './tensors.js';

type TensorByName = (name: string) => Tensor;

/** Operations from the MLP's normed input to its output. */
export function mlpOps(stage: Stage, layer: Layer, tensor: TensorByName): NecessaryOp[] {
  if (layer.mlp.kind === 'none') return [];
  return layer.mlp.kind === 'dense'
    ? denseOps(stage, layer.index, layer.mlp, tensor)
    : moeOps(stage, layer.index, layer.mlp, tensor);
}

function denseOps(stage: Stage, layer: number, mlp: DenseMlp, tensor: TensorByName): NecessaryOp[] {
  const { tokens } = stage;
  const up = mlp.gated ? [tensor('gate_proj'), tensor('up_proj')] : [tensor('up_proj')];
  const inner = tokens * mlp.intermediateSize;
  return [
    linearOp(stage, mlp.gated ? 'gate_up_proj' : 'up_proj', up, tokens),
    operation(stage, mlp.gated ? 'swiglu' : 'activation', 'elementwise', layer, inner * up.length, inner),
    linearOp(stage, 'down_proj', [tensor('down_proj')], tokens),
  ];
}

/**
 * Expected number of experts that receive at least one of `tokens` with uniform routing: E·(1 − (1 − k/E)^tokens). A
 * token misses an expert with probability 1 − k/E, and expectations add (occupancy problem, Feller, vol. 1, IV).
 */
export function expectedDistinctExperts(experts: number, perToken: number, tokens: number): number {
  return experts * (1 - (1 - perToken / experts) ** tokens);
}

function moeOps(stage: Stage, layer: number, mlp: MoeMlp, tensor: TensorByName): NecessaryOp[] {
  const { tokens, a, storage } = stage;
  const { expertCount: E, expertsPerToken: k, intermediateSize: I } = mlp;
  const D = a.hiddenSize;
  const routed = tokens * k;
  const distinct = expectedDistinctExperts(E, k, tokens);

  // Each token is read once, however many experts it goes to; each expert's weights once, if any token goes to it.
  const expertOp = (name: string, tensors: Tensor[], inElements: number): NecessaryOp => {
    const columns = tensors[0]?.columns ?? 0;
    const rows = sum(tensors, (weight) => weight.rows);
    return operation(stage, name, 'gemm', layer, inElements, routed * rows, {
      dtype: tensors[0] ? linearDType(stage, tensors[0]) : storage.activations,
      flops: 2 * routed * rows * columns,
      weights: distinct * sum(tensors, (weight) => tensorBytes(weight, storage.weights)),
      parameters: sum(tensors, (weight) => weight.count * parametersOf(weight)),
      gemm: { m: routed / distinct, n: rows, k: columns, batch: distinct },
    });
  };

  const router = linearOp(stage, 'router', [tensor('router')], tokens);
  const bias = mlp.routerBias ? tensor('router_bias') : null;
  const ops = [
    router,
    // Reads every expert's score, writes index and weight of the chosen ones.
    operation(stage, 'router_topk', 'other', layer, tokens * E, routed * 2, {
      weights: bias ? tensorBytes(bias, storage.weights) : 0,
      parameters: bias ? parametersOf(bias) : 0,
    }),
    expertOp('experts_gate_up_proj', [tensor('experts_gate_proj'), tensor('experts_up_proj')], tokens * D),
    operation(stage, 'experts_swiglu', 'elementwise', layer, routed * 2 * I, routed * I),
    expertOp('experts_down_proj', [tensor('experts_down_proj')], routed * I),
  ];
  const S = mlp.sharedIntermediateSize;
  if (S > 0) {
    ops.push(
      linearOp(stage, 'shared_gate_up_proj', [tensor('shared_gate_proj'), tensor('shared_up_proj')], tokens),
      operation(stage, 'shared_swiglu', 'elementwise', layer, tokens * 2 * S, tokens * S),
      linearOp(stage, 'shared_down_proj', [tensor('shared_down_proj')], tokens),
    );
  }
  if (mlp.sharedGate) {
    ops.push(linearOp(stage, 'shared_expert_gate', [tensor('shared_expert_gate')], tokens));
  }
  // The weighted sum over a token's experts, including the shared one's output (and gate).
  const combined = routed * D + (S > 0 ? tokens * D : 0) + (mlp.sharedGate ? tokens : 0);
  ops.push(operation(stage, 'experts_combine', 'elementwise', layer, combined, tokens * D));
  return ops;
}
