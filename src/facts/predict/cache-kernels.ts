import type { GroupedAttention } from '../../llm/architecture.js';
import { bytesPerElement } from '../../model/dtype.js';
import { elementwiseKernels, type StageKernel, type StageModel, type StagePlan } from './fused-kernel.js';

/** Small kernels per layer for the position and mask of a static cache: 1100 nodes per step against 924 launches. */
const staticCacheKernels = 7;

/**
 * A growing cache is copied in full to append tokens (torch.cat). A static one is written in place; because SDPA with a
 * mask cannot share heads, keys and values are first repeated for every query head over the reserved length.
 */
export function cacheAndAttention(
  fused: StageKernel,
  attention: GroupedAttention,
  { storage }: StageModel,
  { shape, reserved }: StagePlan,
): StageKernel[] {
  const { batchSize, newTokens, contextTokens } = shape;
  const { headCount: heads, kvHeadCount: kvHeads, headDim } = attention;
  const elementBytes = bytesPerElement[storage.kvCache];
  const tokenBytes = kvHeads * headDim * elementBytes;
  const op = { name: 'kv_cache', class: 'copy' as const, dtype: storage.kvCache };
  if (reserved === null) {
    const cacheBytes = batchSize * (contextTokens + newTokens) * tokenBytes;
    return [...elementwiseKernels(op, [2 * cacheBytes, 2 * cacheBytes]), fused];
  }
  const written = batchSize * newTokens * tokenBytes;
  const emptyKernels = Array.from({ length: staticCacheKernels }, () => 0);
  const writes = elementwiseKernels(op, [2 * written, 2 * written, ...emptyKernels]);
  if (shape.phase === 'prefill') return [...writes, fused];
  const keys = batchSize * reserved;
  const repeat =
    heads === kvHeads
      ? []
      : [
          keys * (tokenBytes + heads * headDim * elementBytes),
          keys * (tokenBytes + heads * headDim * elementBytes),
        ];
  const bytes =
    bytesOfAttention(keys, heads, headDim, elementBytes) +
    batchSize * newTokens * 2 * heads * headDim * elementBytes;
  return [
    ...writes,
    ...elementwiseKernels(op, repeat, 'strided', { name: 'repeat_kv' }),
    {
      ...fused,
      params: {
        batch: batchSize,
        heads,
        kv_heads: heads,
        head_dim: headDim,
        new_tokens: newTokens,
        context: reserved,
      },
      flops: 4 * heads * headDim * keys * newTokens,
      bytes,
    },
  ];
}

const bytesOfAttention = (keys: number, heads: number, headDim: number, elementBytes: number): number =>
  2 * keys * heads * headDim * elementBytes;
