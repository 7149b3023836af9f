import { bytesPerElement } from '../model/dtype.js';
import { tensorBytes, type Storage } from './storage.js';
import type { Tensor } from './tensors.js';

const mib = 2 ** 20;
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
 */
export function loadedRest(tensors: readonly Tensor[], { weights }: Pick<Storage, 'weights'>): number {
  const matrices = new Map<string, number>();
  tensors.forEach((t, at) => {
    if (t.kind === 'vector') return;
    const name = fused[t.name];
    const key = name === undefined || t.layer === null ? String(at) : `${t.layer} ${name}`;
    const bytes = tensorBytes(t, weights) - t.bias * bytesPerElement[weights.rest];
    matrices.set(key, (matrices.get(key) ?? 0) + bytes * t.count);
  });
  return [...matrices.values()].reduce((sum, bytes) => sum + restOf(bytes), 0);
}

function restOf(bytes: number): number {
  if (bytes < 10 * mib) return 0;
  const rest = Math.ceil(bytes / (2 * mib)) * 2 * mib - bytes;
  return bytes >= 20 * mib || rest <= mib ? rest : 0;
}
