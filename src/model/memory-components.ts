/** Memory components that the calculator estimates, in display order. */
export const estimatedComponents = [
  'model_weights',
  'kv_cache',
  'activations',
  'framework_overhead',
  'cuda_graphs',
  'cuda_context',
  'allocator_reserve',
] as const;

/** With the components that only a measurement has. */
export const memoryComponents = [...estimatedComponents, 'other_processes', 'residual'] as const;

export type EstimatedComponent = (typeof estimatedComponents)[number];
