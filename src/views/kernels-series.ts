import type { KernelMap, KernelResult, KernelsResult } from '../model/documents/kernels.js';

/** Cases that compute something and were measured: look-ups have no place on a logarithmic axis. */
export function placed({ cases }: KernelsResult): KernelResult[] {
  return cases.filter(({ intensity, flops_per_s: rate }) => intensity !== null && rate !== null);
}

/** Cells of a sweep that have a case; x and y count the swept values. */
export function cellsOf(
  { cases }: KernelsResult,
  { cells }: KernelMap,
): { x: number; y: number; one: KernelResult }[] {
  const byId = new Map(cases.map((one) => [one.case, one]));
  return cells.flatMap(({ x, y, case: id }) => {
    const one = byId.get(id);
    return one ? [{ x, y, one }] : [];
  });
}
