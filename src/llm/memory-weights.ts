import { bytesPerElement } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import type { Part } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';
import { rotaryTableBytes, tensorBytes, weightBytes, type Storage } from './storage.js';
import type { Tensor } from './tensors.js';
import { weightFormatLabel } from '../vocabulary/weight-formats.js';

/** Weights of each device: its tensors, or its share of the size in a file's header. */
export function weightParts(
  a: Architecture,
  group: readonly Device[],
  { storage, headerWeights, engine }: Pick<ResolvedRequest, 'storage' | 'headerWeights' | 'engine'>,
): Part[] {
  const rotary = engine === 'vllm' ? (rotaryTableBytes(a) ?? 0) : 0;
  const rotaryTerm = rotary > 0 ? ' + rotary table' : '';
  const single = group.length === 1;
  const fileBytes = headerWeights && !single ? weightBytes(a, storage).total : 0;
  // Devices of one pipeline rank share their list of tensors, and its sum.
  const parts = new Map<Device['tensors'], Part>();
  return group.map(({ tensors }) => {
    const computedPart = parts.get(tensors);
    if (computedPart) return computedPart;
    const computedBytes = tensors
      .map((tensor) => tensorBytes(tensor, storage.weights) * tensor.count)
      .reduce((sum, bytes) => sum + bytes, 0);
    const part: Part = headerWeights
      ? {
          bytes: (single ? headerWeights.bytes : headerWeights.bytes * (computedBytes / fileBytes)) + rotary,
          formula: `${headerWeights.source}${single ? '' : ', in proportion to the shards'}${rotaryTerm}`,
          confidence: single ? 'high' : 'medium',
        }
      : {
          bytes: computedBytes + rotary,
          formula: `sum of ${single ? 'all' : "the GPU's"} tensors, by config.json, in ${weightFormatLabel(storage.weights.name)}${rotaryTerm}`,
          confidence: 'high',
        };
    parts.set(tensors, part);
    return part;
  });
}

/** A matrix and its bias are separate tensors; transformers stores all experts of a layer in one. */
export function allocationsOf(tensor: Tensor, { weights }: Pick<Storage, 'weights'>): number[] {
  const bias = tensor.bias * bytesPerElement[weights.rest];
  const matrix = tensorBytes({ ...tensor, bias: 0 }, weights) * tensor.count;
  return bias > 0 ? [matrix, bias * tensor.count] : [matrix];
}
