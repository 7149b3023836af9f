import type { Tiling } from '../../model/documents/gemms.js';
import { figure, type Figure, missing } from '../../model/figure.js';
import type { GemmShape } from './shape.js';

/**
 * Tiles of the output and how they fill the SMs (NVIDIA, Matrix Multiplication Background User's Guide, sections 3.2
 * and 3.3: tile and wave quantization). The library is column-major: rows of its tile are along our N, columns along
 * our M. Assumes that an SM runs one tile at a time, as it does with the large tiles of tensor-core kernels.
 * @param tile MxN or MxNxK as the library writes it
 * @param splits thread blocks that share one tile's K; null if the number is unknown
 */
export function tiling(
  shape: GemmShape,
  tile: string,
  calls: number,
  splits: number | null,
  smCount: Figure,
): Tiling | null {
  const match = /^(\d+)x(\d+)(?:x\d+)?$/.exec(tile);
  if (!match) return null;
  const [alongN, alongM] = [Number(match[1]), Number(match[2])];
  const tilesAlongN = Math.ceil(shape.n / alongN);
  const tilesAlongM = Math.ceil(shape.m / alongM);
  const covered = tilesAlongN * alongN * tilesAlongM * alongM;
  const tiles: Figure =
    splits === null
      ? missing('split_k', 'the kernel splits K over several thread blocks; their number is not in its name')
      : figure(
          tilesAlongN * tilesAlongM * shape.batch * splits,
          'tiles',
          `⌈N/${alongN}⌉ × ⌈M/${alongM}⌉ × batch × splits of K`,
        );
  const waves = combine(tiles, smCount, 'waves', 'tiles / SMs', (t, sms) => t / sms);
  return {
    tile,
    calls,
    tiles,
    tile_efficiency: figure((shape.m * shape.n) / covered, 'ratio', 'M × N / area of the tiles'),
    waves,
    wave_efficiency: combine(waves, waves, 'ratio', 'waves / ⌈waves⌉', (w) => w / Math.ceil(w)),
  };
}

function combine(
  a: Figure,
  b: Figure,
  unit: string,
  source: string,
  f: (x: number, y: number) => number,
): Figure {
  if (a.value === null) return a;
  return b.value === null ? b : figure(f(a.value, b.value), unit, source);
}

/** Number of parts that K is split into, from the log's algorithm; unknown for a kernel named …splitK…. */
export function splitsOf(algoOrKernel: string | null): number | null {
  const splits = /\b(?:num)?splitsk=(\d+)/i.exec(algoOrKernel ?? '')?.[1];
  if (splits !== undefined) return Math.max(1, Number(splits));
  return /split_?k/i.test(algoOrKernel ?? '') ? null : 1;
}
