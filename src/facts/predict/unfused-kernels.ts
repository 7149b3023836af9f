import type { GroupedAttention, Layer } from '../../llm/architecture.js';
import type { NecessaryOp } from '../../llm/necessary-op.js';
import { bytesPerElement } from '../../model/dtype.js';
import { cacheAndAttention } from './cache-kernels.js';
import { encoderDecoderKernels } from './encoder-decoder-kernels.js';
import {
  elementwiseKernels,
  fusedKernel,
  type StageKernel,
  type StageModel,
  type StagePlan,
} from './fused-kernel.js';

/** Families that store Q, K, V (and gate, up) as one matrix. */
const oneMatrix = new Set(['Phi-3', 'GPT-2']);

/**
 * Kernels of an operation as Hugging Face transformers 5 launches them in eager mode, counted on an H200 with nsys
 * (test/fixtures/nsys-2025.3.1-h200, tiny-nsys: 40 per layer and 22 outside the layers in a decode step). Each
 * elementwise kernel reads its inputs and writes its output.
 */
export function unfusedKernels(
  op: NecessaryOp,
  layer: Layer,
  model: StageModel,
  plan: StagePlan,
): StageKernel[] {
  const kernels = decoderKernels(op, layer, model, plan);
  return model.architecture.encoder ? encoderDecoderKernels(op, layer, model, plan, kernels) : kernels;
}

function decoderKernels(op: NecessaryOp, layer: Layer, model: StageModel, plan: StagePlan): StageKernel[] {
  const fused = fusedKernel(op, layer, model, plan);
  const { attention } = layer;
  if (op.name === 'embedding') return [fused, ...positionTables(op, layer, model, plan)];
  if (op.gemm) return splitGemm(fused, layer, model);
  if (op.class === 'norm') return normKernels(op, model, plan);
  if (op.name === 'rotary' && attention.kind === 'grouped')
    return rotationKernels(fused, attention, model, plan);
  if (op.name === 'attention' && attention.kind === 'grouped' && attention.keys !== 'all')
    return cacheAndAttention(fused, attention, model, plan);
  if (op.name === 'swiglu' && layer.mlp.kind === 'dense') {
    // silu(gate), times up: as the table's case does it.
    const params = { tokens: tokensOf(plan), intermediate: layer.mlp.intermediateSize };
    return [{ ...fused, kernel: 'swiglu', params, bytes: 5 * op.bytes.activations_out, launches: 2 }];
  }
  return [fused];
}

/** Q, K and V, and gate and up are separate GEMMs. */
function splitGemm(fused: StageKernel, layer: Layer, { architecture }: StageModel): StageKernel[] {
  const { m = 0, n = 0, k = 0, batch } = fused.params;
  const parts = batch !== undefined || oneMatrix.has(architecture.family) ? [n] : partsOf(fused.op, n, layer);
  if (parts.length === 1) return [fused];
  const inputs = parts.reduce((sum, part) => sum + part, 0);
  // Bytes of weights and outputs scale with n; each GEMM reads the whole input.
  const element = bytesPerElement[fused.dtype as keyof typeof bytesPerElement];
  const inputBytes = m * k * element;
  return parts.map((part) => ({
    ...fused,
    params: { m, n: part, k },
    flops: (fused.flops * part) / inputs,
    bytes: inputBytes + ((fused.bytes - inputBytes) * part) / inputs,
  }));
}

function partsOf(name: string, n: number, { attention }: Layer): number[] {
  if (name === 'cross_kv_proj') return [n / 2, n / 2];
  if (name === 'qkv_proj' && attention.kind === 'grouped') {
    const kv = attention.kvHeadCount * attention.headDim;
    return [attention.headCount * attention.headDim, kv, kv];
  }
  return name.endsWith('gate_up_proj') ? [n / 2, n / 2] : [n];
}

/**
 * RMSNorm as in LlamaRMSNorm: to float32, square, mean, + eps, 1/√, ×, back, × weight. float32 needs no conversions.
 * LayerNorm is one kernel. Additions of the residual stream come before it.
 */
function normKernels(
  op: NecessaryOp,
  { architecture, storage }: StageModel,
  { shape }: StagePlan,
): StageKernel[] {
  const elementBytes = bytesPerElement[storage.activations];
  const hidden = architecture.hiddenSize;
  const isFinal = op.name === 'final_norm';
  // By default the model norms every token of a prompt, and then takes only the last ones.
  const scale = isFinal ? shape.newTokens : 1;
  const vectors =
    op.name === 'qk_norm'
      ? 1
      : Math.round(
          op.bytes.activations_in /
            elementBytes /
            hidden /
            (shape.batchSize * (isFinal ? 1 : shape.newTokens)),
        );
  const n = (op.bytes.activations_in / elementBytes / Math.max(1, vectors)) * scale;
  const rows = n / (op.name === 'qk_norm' ? headDimOf(architecture.layers[0]) : hidden);
  const additions = elementwiseKernels(
    op,
    Array.from({ length: Math.max(0, vectors - 1) }, () => 3 * n * elementBytes),
    'elementwise',
    {
      name: 'residual_add',
      class: 'elementwise',
    },
  );
  if (architecture.norm === 'layernorm')
    return [...additions, ...elementwiseKernels(op, [2 * n * elementBytes])];
  const toFloat32 = elementBytes === 4 ? [] : [n * (elementBytes + 4)];
  const fromFloat32 = elementBytes === 4 ? [] : [n * (4 + elementBytes)];
  return [
    ...additions,
    ...elementwiseKernels(op, [
      ...toFloat32,
      8 * n,
      4 * n + 4 * rows,
      8 * rows,
      8 * rows,
      8 * n,
      ...fromFloat32,
      2 * n * elementBytes,
    ]),
  ];
}

const headDimOf = (layer: Layer | undefined): number =>
  layer?.attention.kind === 'grouped' ? layer.attention.headDim : 1;

/** For Q and for K: × cos, negate half, concatenate, × sin, add, as in the table's case. */
function rotationKernels(
  fused: StageKernel,
  { headCount: heads, kvHeadCount: kv_heads, rotaryDim: head_dim }: GroupedAttention,
  { storage }: StageModel,
  plan: StagePlan,
): StageKernel[] {
  const tokens = tokensOf(plan);
  const bytes = 10 * tokens * (heads + kv_heads) * head_dim * bytesPerElement[storage.activations];
  return [{ ...fused, kernel: 'rope', params: { tokens, heads, kv_heads, head_dim }, bytes, launches: 10 }];
}

const tokensOf = ({ shape }: StagePlan): number => shape.batchSize * shape.newTokens;

/** Positions, and cosines and sines of the rotation, computed in every call by very short kernels. */
function positionTables(
  op: NecessaryOp,
  { attention }: Layer,
  model: StageModel,
  { shape }: StagePlan,
): StageKernel[] {
  if (attention.kind !== 'grouped' || attention.rotaryDim === 0)
    return elementwiseKernels(op, [0, 0], 'elementwise', { name: 'positions' });
  const table = shape.newTokens * attention.rotaryDim * 4;
  const elementBytes = bytesPerElement[model.storage.activations];
  return elementwiseKernels(
    op,
    [
      0,
      0,
      0,
      0,
      ...Array.from({ length: 5 }, () => 2 * table),
      ...(elementBytes === 4 ? [] : [2 * table, 2 * table]),
    ],
    'elementwise',
    { name: 'positions', class: 'elementwise' },
  );
}
