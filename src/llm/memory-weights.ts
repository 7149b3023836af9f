import { bytesPerElement } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import type { WeightsPart } from './memory-place.js';
import type { ResolvedRequest } from './memory-request.js';
import type { Device } from './memory-shards.js';
import { rotaryTableBytes, tensorBytes, weightBytes, type Storage } from './storage.js';
import type { Tensor } from './tensors.js';

const mib = 2 ** 20;

/** Weights of each device: its tensors, or its share of what a file's header says. */
export function weightParts(
  a: Architecture,
  group: readonly Device[],
  { storage, headerWeights, engine }: Pick<ResolvedRequest, 'storage' | 'headerWeights' | 'engine'>,
): WeightsPart[] {
  const rotary = engine === 'vllm' ? (rotaryTableBytes(a) ?? 0) : 0;
  const also = rotary > 0 ? ' + rotary table' : '';
  const single = group.length === 1;
  const whole = headerWeights && !single ? weightBytes(a, storage).total : 0;
  // Devices of one pipeline rank share their list of tensors, and its sum.
  const found = new Map<Device['tensors'], WeightsPart>();
  return group.map(({ tensors }) => {
    const known = found.get(tensors);
    if (known) return known;
    const own = tensors
      .map((t) => tensorBytes(t, storage.weights) * t.count)
      .reduce((sum, bytes) => sum + bytes, 0);
    const ends = segmentEnds(tensors.flatMap((t) => allocationsOf(t, storage)));
    const part: WeightsPart = headerWeights
      ? {
          bytes: (single ? headerWeights.bytes : headerWeights.bytes * (own / whole)) + rotary,
          formula: `${headerWeights.source}${single ? '' : ', in proportion to the shards'}${also}`,
          confidence: single ? 'high' : 'medium',
          ...ends,
        }
      : {
          bytes: own + rotary,
          formula: `Σ of the ${single ? '' : 'GPU’s '}tensors of config.json in ${storage.weights.name}${also}`,
          confidence: 'high',
          ...ends,
        };
    found.set(tensors, part);
    return part;
  });
}

/** A matrix and its bias are tensors of their own; transformers keeps all experts of a layer in one. */
function allocationsOf(t: Tensor, { weights }: Pick<Storage, 'weights'>): number[] {
  const bias = t.bias * bytesPerElement[weights.rest];
  const matrix = tensorBytes({ ...t, bias: 0 }, weights) * t.count;
  return bias > 0 ? [matrix, bias * t.count] : [matrix];
}

/**
 * What torch's caching allocator adds to weights: blocks up to 1 MiB share segments of 2 MiB, those under 10 MiB segments of
 * 20 MiB, larger ones have their own, rounded up to 2 MiB; an end of up to 1 MiB is not split off and counts as given out
 * (c10/cuda/CUDACachingAllocator.cpp: get_allocation_size, should_split).
 */
function segmentEnds(sizes: readonly number[]): { roundingBytes: number; unsplitBytes: number } {
  let small = 0;
  let medium = 0;
  let free = 0;
  let unsplitBytes = 0;
  for (const bytes of sizes) {
    if (bytes <= mib) small += bytes;
    else if (bytes < 10 * mib) medium += bytes;
    else {
      const end = upTo(bytes, 2 * mib) - bytes;
      if (end <= mib) unsplitBytes += end;
      else free += end;
    }
  }
  const shared = upTo(small, 2 * mib) - small + upTo(medium, 20 * mib) - medium;
  return { roundingBytes: free + shared, unsplitBytes };
}

function upTo(bytes: number, unit: number): number {
  return Math.ceil(bytes / unit) * unit;
}
