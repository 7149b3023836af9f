/** Meaning of an event's category. */
export const categoryKinds = {
  unknown: 0,
  kernel: 1,
  copy: 2,
  runtime: 3,
  driver: 4,
  range: 5,
  op: 6,
  python: 7,
  instant: 8,
  /** Known and intentionally skipped. */
  ignored: 9,
} as const;
export type CategoryKind = (typeof categoryKinds)[keyof typeof categoryKinds];

/** Names since Kineto, and before it (torch 1.8 to 1.12). */
const byName: Record<string, CategoryKind> = {
  kernel: categoryKinds.kernel,
  gpu_memcpy: categoryKinds.copy,
  memcpy: categoryKinds.copy,
  gpu_memset: categoryKinds.copy,
  memset: categoryKinds.copy,
  runtime: categoryKinds.runtime,
  user_annotation: categoryKinds.range,
  cpu_op: categoryKinds.op,
  operator: categoryKinds.op,
  python_function: categoryKinds.python,
  cpu_instant_event: categoryKinds.instant,
  // From the first to the last kernel of a range, without work of its own (torch's table shows it as 2600 % of the time).
  gpu_user_annotation: categoryKinds.ignored,
  // The waiting API call has its own row in cuda_runtime.
  cuda_sync: categoryKinds.ignored,
  cuda_event: categoryKinds.ignored,
  overhead: categoryKinds.ignored,
  trace: categoryKinds.ignored,
  // Flows: redundant with the correlation id in the args.
  ac2g: categoryKinds.ignored,
  async_cpu_to_gpu: categoryKinds.ignored,
  async_gpu: categoryKinds.ignored,
  async: categoryKinds.ignored,
  fwdbwd: categoryKinds.ignored,
  forward_backward: categoryKinds.ignored,
  // Metadata and instants without a category.
  '': categoryKinds.ignored,
};

export function categoryKind(name: string): CategoryKind {
  const kind = byName[name.toLowerCase()];
  if (kind !== undefined) return kind;
  // cuda_runtime, hip_runtime, xpu_runtime, …
  if (name.endsWith('_runtime')) return categoryKinds.runtime;
  if (name.endsWith('_driver')) return categoryKinds.driver;
  return categoryKinds.unknown;
}
