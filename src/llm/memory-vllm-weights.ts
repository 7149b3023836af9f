import { bytesPerElement } from '../model/dtype.js';
import { formatOf, isQuantizable, type Storage } from './storage.js';
import type { Tensor } from './tensors.js';
import { torchAllocator } from './torch-allocator.js';

const mib = 2 ** 20;
/** Schemes of vLLM's linear methods that quantize checkpoints while loading (`--quantization fp8`). */
const onlineSchemes: ReadonlySet<string> = new Set(['fp8-row']);
/**
 * Linear layers that vLLM merges into one, with their matrices (QKVParallelLinear, MergedColumnParallelLinear,
 * FusedMoE).
 */
const mergedNames: Readonly<Record<string, string>> = {
  q_proj: 'qkv',
  k_proj: 'qkv',
  v_proj: 'qkv',
  gate_proj: 'gate_up',
  up_proj: 'gate_up',
  shared_gate_proj: 'shared_gate_up',
  shared_up_proj: 'shared_gate_up',
  experts_gate_proj: 'experts_gate_up',
  experts_up_proj: 'experts_gate_up',
};

/**
 * Bytes by which torch's allocator rounds up the weights while vLLM loads them. It loads with max_split_size_mb = 20
 * (v1/worker/gpu_worker.py, load_model, 0.26; also in a log of 0.22, but not up to 0.9): a matrix of at least 20 MiB
 * takes a separate segment, rounded up to 2 MiB, and the remainder is not split off (c10/cuda/CUDACachingAllocator.cpp,
 * should_split). From 10 MiB a remainder of up to 1 MiB stays too. "Model loading took" counts blocks, including these
 * remainders.
 *
 * If vLLM quantizes while loading (fp8, layers/quantization/online/fp8.py), each layer first exists in its float dtype,
 * is copied to FP8 and freed. Later layers reuse the freed blocks, so the remainders are those of these blocks.
 */
export function loadingRemainders(
  tensors: readonly Tensor[],
  storage: Pick<Storage, 'weights' | 'loadedIn'>,
): number {
  const matrices = matricesOf(tensors, storage);
  const allocator = torchAllocator(20 * mib);
  // Made with the model: embedding and lm_head. Quantized layers follow one by one.
  const inOrder = [
    ...matrices.filter(({ floatBytes }) => floatBytes === null),
    ...matrices.filter(({ floatBytes }) => floatBytes),
  ];
  return inOrder.reduce((sum, { bytes, floatBytes }) => {
    const float = floatBytes === null ? null : allocator.malloc(floatBytes);
    const { size } = allocator.malloc(bytes);
    if (float) allocator.free(float);
    return sum + (bytes < 10 * mib && floatBytes === null ? 0 : size - bytes);
  }, 0);
}

interface Matrix {
  /** Without scales and bias, which are separate tensors. */
  bytes: number;
  /** Bytes in the dtype that it is quantized from; null: loaded as stored. */
  floatBytes: number | null;
}

function matricesOf(
  tensors: readonly Tensor[],
  { weights, loadedIn }: Pick<Storage, 'weights' | 'loadedIn'>,
): Matrix[] {
  const matrices = new Map<string, Matrix>();
  tensors.forEach((tensor, index) => {
    if (tensor.kind === 'vector') return;
    const name = mergedNames[tensor.name];
    const key = name === undefined || tensor.layer === null ? String(index) : `${tensor.layer} ${name}`;
    const online =
      loadedIn !== undefined && isQuantizable(tensor, weights) && onlineSchemes.has(weights.name);
    const elements = tensor.rows * tensor.columns * tensor.count;
    const { bytes, floatBytes } = matrices.get(key) ?? {
      bytes: 0,
      floatBytes: online ? 0 : null,
    };
    matrices.set(key, {
      bytes: bytes + elements * formatOf(tensor, weights).bytesPerWeight,
      floatBytes:
        floatBytes === null || loadedIn === undefined
          ? null
          : floatBytes + elements * bytesPerElement[loadedIn],
    });
  });
  return [...matrices.values()];
}
