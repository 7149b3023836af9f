/** Labels of the parts of the peak memory of the embedded engine's process; the same on every surface. */
export const componentNames = {
  weights: 'weights',
  kv_cache: 'KV cache',
  activations: 'activations',
  runtime: 'runtime and mapped files',
  residual: 'residual',
} as const;
