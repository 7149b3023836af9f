import { bytesPerElement, type DType } from '../model/dtype.js';
import type { ActivationEstimate } from './activations.js';
import type { Architecture, Layer } from './architecture.js';
import type { ResolvedRequest } from './memory-request.js';
import { plural } from '../vocabulary/format.js';

/** The vLLM options that its profiling run depends on. */
interface VllmProfileShape {
  activations: DType;
  maxNumBatchedTokens: number;
  maxNumSeqs: number;
  /** False with enforce_eager. */
  compiled: boolean;
  /** cuBLAS's workspace, which torch allocates at the first GEMM. */
  workspaceBytes: number;
  /** From `onCublas`: if false, lm_head is the first GEMM on cuBLAS, after the MLP. */
  cublasLayers: boolean;
  /** From `onSecondRunner`. */
  secondRunner: boolean;
  /** Size of the GPU's L2: Inductor flushes it between two timings of a kernel with a tensor of this size. */
  l2Bytes: number;
}

/** Elements per token of a mixer without an MLP: its projections, before and after the convolution. */
function mixerWidth(attention: Layer['attention']): number {
  return attention.kind === 'recurrent' ? attention.inRows + attention.convChannels : 0;
}

/**
 * Models with an MLP that references gate and up during the down projection: `gate_up, _ = …` in
 * vllm/model_executor/models.
 */
const keepsGateUp = new Set([
  'deepseek_v2',
  'deepseek_v3',
  'gemma',
  'gemma2',
  'gemma3',
  'gemma3_text',
  'qwen2',
  'qwen2_moe',
  'qwen3',
  'qwen3_moe',
]);
/**
 * Models with experts that the second model runner supports (DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES,
 * vllm/config/vllm.py).
 */
const expertsOnSecondRunner = new Set(['deepseek_v2', 'qwen2_moe']);

/**
 * Whether vLLM uses its second model runner: in 0.26 for all dense models (`use_v2_model_runner`, vllm/config/vllm.py).
 * 0.9 has none, 0.26 has it; the versions between are unknown, and assumed to have it from 0.22 on.
 */
export function onSecondRunner(
  a: Pick<Architecture, 'layers' | 'modelType'>,
  { engineVersion }: Pick<ResolvedRequest, 'engineVersion'>,
): boolean {
  if (!isRecentVllm(engineVersion)) return false;
  return a.layers.every(({ mlp }) => mlp.kind !== 'moe') || expertsOnSecondRunner.has(a.modelType);
}

/**
 * Whether linear layers use cuBLAS: FP8 ones use CUTLASS or DeepGEMM ("Selected CutlassFP8ScaledMMLinearKernel", 0.26).
 */
export function onCublas({ storage }: Pick<ResolvedRequest, 'storage'>): boolean {
  return storage.weights.compute !== 'float8';
}

/** From 0.22 on, or unknown: logs of 0.4 to 0.9 show the earlier rules, one of 0.22 and 0.26's sources these. */
export function isRecentVllm(version: string | null): boolean {
  const match = /^v?(\d+)\.(\d+)/.exec(version ?? '');
  return match === null || Number(match[1]) > 0 || Number(match[2]) >= 22;
}

/**
 * Bytes that vLLM's profiling run adds at its peak ("peak activation"), in vLLM 0.26 (v1/worker/gpu_worker.py,
 * determine_available_memory; gpu/model_runner.py, profile_run): a step of T = max_num_batched_tokens without attention, then
 * the sampler. With b bytes per number, D the model's width and I the MLP's width that a token goes through on this device:
 *
 * - MLP: T·b·(3·D + 3·I), the layer's input and output and the residual, gate and up, and their product. Uncompiled, one D
 *   more where the class keeps gate and up while it projects down.
 * - Compiled, a tensor of the L2's size: Inductor times its kernels at their first call, which is this run.
 * - Sampler: T·b·D + S·b·(D + V) and 12 bytes for each 1024 logits, S = min(max_num_seqs, T): logits are changed in place.
 *   The first model runner copies them instead, in float32 and sorted: 9.7·4·S·V, a fit to public logs.
 * - cuBLAS's workspace, in the MLP only if its GEMMs use cuBLAS.
 */
export function vllmActivationPeak(a: Architecture, shape: VllmProfileShape): ActivationEstimate {
  const { maxNumBatchedTokens: T, maxNumSeqs, compiled, workspaceBytes, cublasLayers, l2Bytes } = shape;
  const b = bytesPerElement[shape.activations];
  const D = a.hiddenSize;
  const inner = Math.max(
    ...a.layers.map(({ attention, mlp }) =>
      mlp.kind === 'none'
        ? mixerWidth(attention)
        : mlp.kind === 'dense'
          ? (mlp.gated ? 3 : 2) * mlp.intermediateSize
          : 3 * (mlp.expertsPerToken * mlp.intermediateSize + mlp.sharedIntermediateSize),
    ),
  );
  const dense = a.layers.every(({ mlp }) => mlp.kind === 'dense');
  const widths = !compiled && dense && keepsGateUp.has(a.modelType) ? 4 : 3;
  const mlp = T * b * (widths * D + inner) + (compiled ? l2Bytes : 0) + (cublasLayers ? workspaceBytes : 0);
  const S = Math.min(maxNumSeqs, T);
  const second = shape.secondRunner;
  const logits = second
    ? T * b * D + S * b * (D + a.vocabSize) + S * 12 * Math.ceil(a.vocabSize / 1024)
    : 9.7 * 4 * S * a.vocabSize;
  const sampler = logits + workspaceBytes;
  const largest = mlp >= sampler ? 'mlp' : 'sampler';
  return {
    bytes: Math.max(mlp, sampler),
    confidence: 'medium',
    source:
      largest === 'mlp'
        ? `${plural(T, 'token')} × ${b} × (${widths} × ${D} + ${inner}) in the MLP${compiled ? " + L2 (Inductor's timings)" : ''}${cublasLayers ? " + cuBLAS's workspace" : ''}`
        : second
          ? `${plural(T, 'token')} × ${b} × ${D} + logits of ${S} sequences + cuBLAS's workspace`
          : `logits of ${S} sequences × 9.7 × 4 (a fit to public logs) + cuBLAS's workspace`,
    operation: largest,
  };
}

/**
 * Tensors on the GPU that the second model runner keeps for requests. It allocates them between vLLM's two counts
 * (after the weights, before the profile), so neither includes them (v1/worker/gpu/sample: penalties.py, logit_bias.py,
 * bad_words.py; gpu/structured_outputs.py): for each of max_num_seqs a count of each token in int32, two bit masks over
 * tokens, and 4 × 1024 + 128 + 129 numbers for biases, allowed, stop and bad words. The first runner makes them on
 * demand.
 */
export function runnerBuffers(a: Architecture, maxNumSeqs: number): number {
  return maxNumSeqs * 4 * (a.vocabSize + 2 * Math.ceil(a.vocabSize / 32) + 4 * 1024 + 128 + 129);
}
