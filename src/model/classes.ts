/** Kernel and operator classes; one color each throughout every presentation. */
export const opClasses = [
  'gemm',
  'attention',
  'norm',
  'elementwise',
  'copy',
  'embedding',
  /** Mixture of experts: choosing experts, sorting tokens by expert, summing the results. */
  'moe_routing',
  'sampling',
  'communication',
  'quantization',
  /** A whole CUDA graph recorded as one row: what ran inside is not known. */
  'graph',
  'other',
] as const;
export type OpClass = (typeof opClasses)[number];
