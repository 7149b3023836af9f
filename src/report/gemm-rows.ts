import type { Gemm } from '../model/documents/gemms.js';

/** The most telling first: times and stages, then algorithm and tile, then shapes only. */
const preferred: readonly Gemm['source'][] = ['profiler', 'cublaslt-log', 'log', 'cublas-log'];

const shapeKey = ({ m, n, k, batch, dtype }: Gemm): string => [m, n, k, batch, dtype].join(' ');

/**
 * Each shape once: cuBLAS calls cuBLASLt, and a profiled run makes the calls that a logged one makes, so that the same
 * products stand in several sources. Kept is the row of the source that tells most; the order stays.
 * @returns the rows, and how many were left out by source
 */
export function oncePerShape(gemms: readonly Gemm[]): { rows: Gemm[]; leftOut: [Gemm['source'], number][] } {
  const best = new Map<string, Gemm['source']>();
  for (const gemm of gemms) {
    const known = best.get(shapeKey(gemm));
    if (known === undefined || preferred.indexOf(gemm.source) < preferred.indexOf(known))
      best.set(shapeKey(gemm), gemm.source);
  }
  const isKept = (gemm: Gemm) => best.get(shapeKey(gemm)) === gemm.source;
  const leftOut = preferred
    .map((source): [Gemm['source'], number] => [
      source,
      gemms.filter((gemm) => gemm.source === source && !isKept(gemm)).length,
    ])
    .filter(([, count]) => count > 0);
  return { rows: gemms.filter(isKept), leftOut };
}

export const gemmSourceNames: Record<Gemm['source'], string> = {
  profiler: 'profiler',
  'cublas-log': 'cuBLAS log',
  'cublaslt-log': 'cuBLASLt log',
  log: 'log',
};

/** "9 shapes of the cuBLAS log are left out: …", or null when nothing was. */
export function leftOutText(leftOut: readonly [Gemm['source'], number][]): string | null {
  if (leftOut.length === 0) return null;
  const told = leftOut.map(
    ([source, count]) => `${count} ${count === 1 ? 'shape' : 'shapes'} of the ${gemmSourceNames[source]}`,
  );
  return `${told.join(' and ')} left out: a source that tells more has them already (cuBLAS calls cuBLASLt).`;
}
