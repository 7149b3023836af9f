/** Kernel and operator classes; each has the same color everywhere. */
export const opClasses = [
  'gemm',
  'attention',
  'norm',
  'elementwise',
  'copy',
  'embedding',
  /** Mixture of experts: selecting experts, sorting tokens by expert, summing the results. */
  'moe_routing',
  'sampling',
  'communication',
  'quantization',
  /** A CUDA graph recorded as one row: its kernels are unknown. */
  'graph',
  'other',
] as const;
export type OpClass = (typeof opClasses)[number];

/** Classes that a user can give to a kernel. */
export const givenClasses = opClasses.filter((name) => name !== 'graph');
