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
