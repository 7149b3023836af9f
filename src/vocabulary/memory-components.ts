import { plural } from './format.js';
import type { MemoryComponent } from '../model/documents/memory-profile.js';

/** Labels of components of memory; the same on every surface. */
export const componentLabels: Readonly<Record<MemoryComponent['component'] | 'total', string>> = {
  model_weights: 'weights',
  kv_cache: 'KV cache',
  activations: 'activations',
  framework_overhead: 'framework',
  cuda_graphs: 'CUDA graphs',
  cuda_context: 'CUDA context',
  allocator_reserve: 'allocator reserve',
  other_processes: 'other processes',
  residual: 'residual',
  total: 'total',
};

export const componentMeanings: typeof componentLabels = {
  model_weights: 'parameters and buffers of the model',
  kv_cache: 'keys and values of the tokens so far, or the pool reserved for them',
  activations: 'tensors of the forward pass at the peak',
  framework_overhead: 'other framework memory: workspaces, NCCL buffers',
  cuda_graphs: 'private memory of captured CUDA graphs',
  cuda_context: 'driver memory per process on a GPU',
  allocator_reserve: "reserved by the framework's allocator and not used by tensors",
  other_processes: 'used by other processes on the same GPU',
  residual: 'measured total minus all components',
  total: 'memory in use at the peak',
};

/** Why vLLM refuses to start although the weights fit. */
export const poolTooSmall = (maxModelLen: number): string =>
  `vLLM does not start: its KV pool holds less than one sequence of ${plural(maxModelLen, 'token')} (max_model_len)`;

/** A setting of a memory run in words: "input length", "GPU memory utilization". */
export const settingLabel = (key: string): string =>
  key
    .replaceAll('_', ' ')
    .replaceAll(/\b(?:gpu|kv)\b/g, (word) => word.toUpperCase())
    .replace(/\blen\b/, 'length');

/** Kinds of sampled memory, column `kind` of table memory. */
export const sampledMemoryLabels: Readonly<Record<string, string>> = {
  used: 'GPU memory',
  rss: 'resident memory of the processes',
  peak_rss: 'peak resident memory of a process',
  anonymous: 'resident memory without files',
  file: 'resident pages of files',
};
