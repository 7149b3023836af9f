import type { Gemm } from '../model/documents/gemms.js';
import { figure, missing, type Figure } from '../model/figure.js';

/** Sources with times and stages first, then with algorithm and tile, then with shapes only. */
const sourcesByDetail: readonly Gemm['source'][] = ['profiler', 'cublaslt-log', 'log', 'cublas-log'];

const shapeKey = ({ m, n, k, batch, dtype }: Gemm): string => [m, n, k, batch, dtype].join(' ');

/**
 * Each shape once: cuBLAS calls cuBLASLt, and a profiled run makes the same calls as a logged one, so the same GEMMs are in several
 * sources. Keeps the row of the source with the most information, in the original order.
 * @returns the rows, and how many were left out by source
 */
export function oncePerShape(gemms: readonly Gemm[]): { rows: Gemm[]; leftOut: [Gemm['source'], number][] } {
  const best = new Map<string, Gemm['source']>();
  for (const gemm of gemms) {
    const bestSource = best.get(shapeKey(gemm));
    if (
      bestSource === undefined ||
      sourcesByDetail.indexOf(gemm.source) < sourcesByDetail.indexOf(bestSource)
    )
      best.set(shapeKey(gemm), gemm.source);
  }
  const isKept = (gemm: Gemm) => best.get(shapeKey(gemm)) === gemm.source;
  const leftOut = sourcesByDetail
    .map((source): [Gemm['source'], number] => [
      source,
      gemms.filter((gemm) => gemm.source === source && !isKept(gemm)).length,
    ])
    .filter(([, count]) => count > 0);
  return { rows: gemms.filter(isKept), leftOut };
}

/** Share of SM time that computes output: tile efficiency × wave efficiency. */
export function usedShare({ tilings: [tiling] }: Gemm): Figure {
  if (!tiling) return missing('no_tile', 'no kernel name or log has the tile');
  const { tile_efficiency: edge, wave_efficiency: waves } = tiling;
  if (edge.value === null) return edge;
  if (waves.value === null) return waves;
  return figure(edge.value * waves.value, 'ratio', 'tile efficiency × wave efficiency');
}

/** Bytes of A, B and the output, each counted once, per time: the limit of a GEMM with few rows. */
export function movedPerSecond({ achieved_flops: rate, arithmetic_intensity: intensity }: Gemm): Figure {
  if (rate.value === null) return rate;
  if (intensity.value === null) return intensity;
  return figure(rate.value / intensity.value, 'B/s', 'achieved FLOP/s over FLOP per byte');
}

/** Shapes with at least a thousandth of the work. */
export function largeGemms(gemms: readonly Gemm[]): Gemm[] {
  const work = ({ flop, calls }: Gemm) => flop * calls;
  const all = gemms.reduce((sum, gemm) => sum + work(gemm), 0);
  return gemms.filter((gemm) => work(gemm) >= all / 1000);
}
