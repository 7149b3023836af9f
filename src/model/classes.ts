/** Kernel and operator classes; one colour each throughout every presentation. */
export const opClasses = [
  'gemm',
  'attention',
  'norm',
  'elementwise',
  'copy',
  'embedding',
  'sampling',
  'communication',
  'quantization',
  'other',
] as const;
export type OpClass = (typeof opClasses)[number];
