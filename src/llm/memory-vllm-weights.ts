import { bytesPerElement } from '../model/dtype.js';
import { formatOf, isQuantizable, type Storage } from './storage.js';
import type { Tensor } from './tensors.js';
import { torchAllocator } from './torch-allocator.js';

const mib = 2 ** 20;
/** Schemes that vLLM's linear methods for unquantized checkpoints make (`--quantization fp8`). */
const onlineSchemes: ReadonlySet<string> = new Set(['fp8-row']);
/** Products that vLLM computes as one, so that their matrices are one (QKVParallelLinear, MergedColumnParallelLinear, FusedMoE). */
const fused: Readonly<Record<string, string>> = {
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
 * What torch's allocator rounds the weights up by while vLLM loads them. It loads with max_split_size_mb = 20
 * (v1/worker/gpu_worker.py, load_model, 0.26; a log of 0.22 has it too, those up to 0.9 do not): a matrix of 20 MiB and more takes a segment of its own,
 * rounded up to 2 MiB, and what is left of it is not split off (c10/cuda/CUDACachingAllocator.cpp, should_split). From 10 MiB a
 * rest of up to 1 MiB stays too. "Model loading took" counts blocks, so the rests are in it.
 *
 * Quantized while it loads (fp8, layers/quantization/online/fp8.py) each layer is there in its float dtype first, is copied
 * into FP8 and freed: what comes later lies in what was freed, and such rests are those of these blocks.
 */
export function loadedRest(
  tensors: readonly Tensor[],
  storage: Pick<Storage, 'weights' | 'loadedIn'>,
): number {
  const matrices = matricesOf(tensors, storage);
  const allocator = torchAllocator(20 * mib);
  // Made with the model: embedding and lm_head. Layers that are quantized come one by one.
  const kept = [
    ...matrices.filter(({ before }) => before === null),
    ...matrices.filter(({ before }) => before),
  ];
  return kept.reduce((sum, { bytes, before }) => {
    const float = before === null ? null : allocator.malloc(before);
    const { size } = allocator.malloc(bytes);
    if (float) allocator.free(float);
    return sum + (bytes < 10 * mib && before === null ? 0 : size - bytes);
  }, 0);
}

interface Matrix {
  /** Without its scales and its bias, which are tensors of their own. */
  bytes: number;
  /** In the dtype that it is quantized from; null: it comes as it is. */
  before: number | null;
}

function matricesOf(
  tensors: readonly Tensor[],
  { weights, loadedIn }: Pick<Storage, 'weights' | 'loadedIn'>,
): Matrix[] {
  const found = new Map<string, Matrix>();
  tensors.forEach((t, at) => {
    if (t.kind === 'vector') return;
    const name = fused[t.name];
    const key = name === undefined || t.layer === null ? String(at) : `${t.layer} ${name}`;
    const online = loadedIn !== undefined && isQuantizable(t, weights) && onlineSchemes.has(weights.name);
    const own = t.rows * t.columns * t.count;
    const { bytes, before } = found.get(key) ?? { bytes: 0, before: online ? 0 : null };
    found.set(key, {
      bytes: bytes + own * formatOf(t, weights).bytesPerWeight,
      before: before === null || loadedIn === undefined ? null : before + own * bytesPerElement[loadedIn],
    });
  });
  return [...found.values()];
}
