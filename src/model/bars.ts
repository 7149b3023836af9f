/** Heads of the waterfall's bar ids, from the roofline to the measured time; a dot and a subdivision may follow. */
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

/** Parts of an idle interval in time order. */
export const gapParts = [
  'synchronization',
  'host',
  'launch_overhead',
  'launch_latency',
  'device_dependency',
  'unattributed',
] as const satisfies readonly BarHead[];

/** "inefficiency.gemm" is { head: 'inefficiency', tail: 'gemm' }; without a dot the tail is empty. */
export function barParts(id: string): { head: BarHead | null; tail: string } {
  const [head, ...tail] = id.split('.');
  return { head: barHeads.find((barHead) => barHead === head) ?? null, tail: tail.join('.') };
}

export const isBarOf = (id: string, ...heads: readonly BarHead[]): boolean => {
  const { head } = barParts(id);
  return head !== null && heads.includes(head);
};

/** Position of a bar in the waterfall. */
export const barRank = (id: string): number => {
  const { head } = barParts(id);
  return head === null ? -1 : barHeads.indexOf(head);
};

/** Whether a bar is one of these or a part of one. */
export const isAmong = (id: string, names: readonly string[]): boolean =>
  names.includes(id) || names.includes(barParts(id).head ?? '');

/** Whether a bar is host time, by cause or as a whole. */
export const isHostBar = (id: string): boolean => isBarOf(id, 'host');

/** Whether a bar is before the first or after the last activity of a capture. */
export const isEdgeBar = (id: string): boolean => id === 'host.start_up' || id === 'host.shut_down';

/** The cause of a host bar; its id for the bar as a whole. */
export const hostPart = (id: string): string => barParts(id).tail || id;

/** Whether a bar is host time between a runtime's operators or around its calls. */
export const isRuntimeBar = (id: string): boolean =>
  id === 'host.runtime_dispatch' || id === 'host.runtime_call';

/** Host time between two calls: sampling, and the loop around them. */
export const betweenCalls: readonly string[] = ['host.loop', 'host.sampling'];

/** Whether a bar shows exposed copies in this direction, pageable or pinned. */
export const isCopyBar = (id: string, direction: 'htod' | 'dtoh'): boolean =>
  isBarOf(id, 'exposed_copy') && barParts(id).tail.startsWith(direction);

/** Copies from or to pageable memory, which the host makes piece by piece. */
export const isPageableCopyBar = (id: string): boolean =>
  isBarOf(id, 'exposed_copy') && barParts(id).tail.endsWith('_pageable');

const classHeads = ['kernels', 'inefficiency', 'nonessential'] as const;

/** The class of a bar's kernels or, on a CPU, of its operators; null for bars without a class. */
export const classOfBar = (id: string): string | null =>
  isBarOf(id, ...classHeads) ? barParts(id).tail : null;

/** Bars of kernels. */
export const isKernelBar = (id: string): boolean => isBarOf(id, 'roofline', 'serial', ...classHeads);

/** Whether a bar is exposed copies or exposed communication. */
export const isExposedBar = (id: string): boolean => isBarOf(id, 'exposed_comm', 'exposed_copy');

/** Whether a bar is time in which the device waits for the host or for its own earlier work. */
export const isIdleBar = (id: string): boolean =>
  isBarOf(id, 'host', 'synchronization', 'launch_overhead', 'launch_latency', 'device_dependency');
