/** Heads of the waterfall's bars, from what the hardware allows to what was measured; after a dot may stand what of it. */
export const barHeads = [
  'roofline',
  'serial',
  'kernels',
  'inefficiency',
  'nonessential',
  'exposed_comm',
  'exposed_copy',
  'launch_latency',
  'launch_overhead',
  'synchronization',
  'device_dependency',
  'host',
  'unattributed',
  'profiler_overhead',
] as const;
export type BarHead = (typeof barHeads)[number];

/** "inefficiency.gemm" is { head: 'inefficiency', tail: 'gemm' }; without a dot the tail is empty. */
export function barParts(id: string): { head: BarHead | null; tail: string } {
  const [head, ...tail] = id.split('.');
  return { head: barHeads.find((one) => one === head) ?? null, tail: tail.join('.') };
}

const isOf = (id: string, heads: readonly BarHead[]): boolean => {
  const { head } = barParts(id);
  return head !== null && heads.includes(head);
};

const classHeads = ['kernels', 'inefficiency', 'nonessential'] as const;

/** The class whose time a bar is, of kernels or, on a CPU, of operators; null for bars of no class. */
export const classOfBar = (id: string): string | null => (isOf(id, classHeads) ? barParts(id).tail : null);

/** Bars of kernels. */
export const isKernelBar = (id: string): boolean => isOf(id, ['roofline', 'serial', ...classHeads]);

/** Bars of copies and communication that no kernel hides. */
export const isExposedBar = (id: string): boolean => isOf(id, ['exposed_comm', 'exposed_copy']);

/** Bars of a device that waits for the host, or for work of its own. */
export const isIdleBar = (id: string): boolean =>
  isOf(id, ['host', 'synchronization', 'launch_overhead', 'launch_latency', 'device_dependency']);
