/** Kernel and operator classes; one color each throughout every presentation. */
export const opClasses = [
  'gemm',
  'attention',
  'norm',
  'elementwise',
  'copy',
  'embedding',
  /** Of a mixture of experts: choosing experts, sorting tokens by them, summing what they return. */
  'moe_routing',
  'sampling',
  'communication',
  'quantization',
  /** A whole CUDA graph recorded as one row: what ran inside is not known. */
  'graph',
  'other',
] as const;
export type OpClass = (typeof opClasses)[number];
