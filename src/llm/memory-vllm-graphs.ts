import { bytesPerElement } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import {
  byArchitecture,
  cublasWorkspace,
  sourceWithRuns,
  vllmGraphBytes,
  vllmGraphCollective,
  vllmGraphs,
} from './memory-constants.js';
import type { Part } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';
import { onCublas, onSecondRunner } from './memory-vllm-profile.js';
import { plural, formatGb } from '../vocabulary/format.js';

/** `flash_attn_max_num_splits_for_cuda_graph`, vllm/config/attention.py (0.26). */
const attentionSplits = 32;

/** Sizes captured by default: `_set_cudagraph_sizes`, vllm/config/vllm.py (0.26). */
export function captureSizes({
  maxNumSeqs,
  maxNumBatchedTokens,
}: Pick<ResolvedRequest, 'maxNumSeqs' | 'maxNumBatchedTokens'>): number[] {
  const largest = Math.min(maxNumSeqs * 2, 512, maxNumBatchedTokens);
  const range = (step: number, from: number, to: number) =>
    Array.from({ length: Math.ceil((to - from) / step) }, (_, index) => from + index * step);
  return [1, 2, 4, ...range(8, 8, 256), ...range(16, 256, 513)].filter((size) => size <= largest);
}

/**
 * Memory that capturing takes ("Graph capturing finished …, took") on Hopper with the second model runner, vLLM 0.26
 * (gpu/cudagraph_utils.py, compilation/cuda_graph.py). With M the largest size captured:
 *
 * - a step of M tokens three times, 3 × M·b·(3·D + 3·I): a warm-up outside the pool, the pieces, and the whole step. The last is
 *   captured on a stream of its own, and blocks of torch's allocator belong to a stream;
 * - FlashAttention 3's sums of split attention in float32, 32 × heads × M × head dim, twice: warm-up and capture of the whole
 *   step (v1/attention/backends/flash_attn.py: "intermediate buffers of size [num_splits, num_heads, num_tokens, head_size]");
 * - cuBLAS's workspace for the two streams, but not where layers compute in FP8: those kernels are CUTLASS's, and lm_head is
 *   outside the graphs;
 * - driver memory per graph, fitted to one run: layers + 1 pieces and the whole step for each size;
 * - memory per NCCL call, fitted to one run: two calls per layer and one for the embedding, in the pieces and in the whole
 *   step.
 *
 * On other GPUs and with the first model runner: a constant from public logs.
 */
export function vllmGraphPart(a: Architecture, device: Device, request: ResolvedRequest): Part {
  const { gpu, storage, parallel } = request;
  if (gpu?.architecture?.split(' ')[0] !== 'Hopper' || !onSecondRunner(a, request)) {
    return { ...vllmGraphs, formula: sourceWithRuns(vllmGraphs) };
  }
  const sizes = captureSizes(request);
  const largest = Math.max(...sizes);
  const step = Math.max(
    ...device.kinds.map(({ mlp }) => (mlp.kind === 'dense' ? mlp.intermediateSize / parallel.tensor : 0)),
  );
  const tensors = 3 * largest * bytesPerElement[storage.activations] * 3 * (a.hiddenSize + step);
  const splits = Math.max(
    ...device.layers.map(({ attention }) =>
      attention.kind === 'grouped'
        ? attentionSplits * (attention.headCount / parallel.tensor) * largest * attention.headDim * 4
        : 0,
    ),
  );
  const workspaces = onCublas(request) ? 2 : 0;
  const workspaceBytes = byArchitecture(cublasWorkspace, gpu.architecture).bytes;
  const calls =
    parallel.tensor > 1 && !request.customAllReduce ? sizes.length * 2 * (2 * device.layers.length + 1) : 0;
  const graphs = sizes.length * (device.layers.length + 2);
  return {
    bytes:
      tensors +
      2 * splits +
      workspaces * workspaceBytes +
      graphs * vllmGraphBytes.bytes +
      calls * vllmGraphCollective.bytes,
    formula: `3 steps of ${plural(largest, 'token')} + 2 × ${attentionSplits} splits of attention in float32 + ${workspaces} workspaces + ${graphs} graphs × ${formatGb(vllmGraphBytes.bytes)}, ${sourceWithRuns(vllmGraphBytes)}${calls === 0 ? '' : ` + ${calls} NCCL calls × ${formatGb(vllmGraphCollective.bytes)}, ${sourceWithRuns(vllmGraphCollective)}`}`,
    confidence: vllmGraphBytes.confidence,
  };
}
