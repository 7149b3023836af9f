/** Components of what a run takes that the calculator knows, in the order in which they are shown. */
export const estimatedComponents = [
  'model_weights',
  'kv_cache',
  'activations',
  'framework_overhead',
  'cuda_graphs',
  'cuda_context',
  'allocator_reserve',
] as const;

/** And those that only a measurement has. */
export const memoryComponents = [...estimatedComponents, 'other_processes', 'residual'] as const;

export type EstimatedComponent = (typeof estimatedComponents)[number];
