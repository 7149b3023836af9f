import type { Gemm } from '../model/documents/gemms.js';
import { figure, missing, type Figure } from '../model/figure.js';
import { formatCount } from './format.js';

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

/** "64×1408×512", "1×64×32 × 8" of a batched product. */
export function shapeWords({ m, n, k, batch }: Gemm): string {
  return `${m}×${n}×${k}${batch > 1 ? ` × ${formatCount(batch)}` : ''}`;
}

/** Share of the SMs' time in whole waves that is output: tile efficiency × wave efficiency. */
export function usedShare({ tilings }: Gemm): Figure {
  const [tiling] = tilings;
  if (!tiling) return missing('no_tile', 'no name and no log tells the tile');
  const { tile_efficiency: edge, wave_efficiency: waves } = tiling;
  if (edge.value === null) return edge;
  if (waves.value === null) return waves;
  return figure(edge.value * waves.value, 'ratio', 'tile efficiency × wave efficiency');
}

/** Less than a thousandth of the work is not worth a line. */
export function worthALine(gemms: readonly Gemm[]): Gemm[] {
  const work = ({ flop, calls }: Gemm) => flop * calls;
  const all = gemms.reduce((sum, gemm) => sum + work(gemm), 0);
  return gemms.filter((gemm) => work(gemm) >= all / 1000);
}
