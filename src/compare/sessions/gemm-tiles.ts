import type { CompareResult } from '../../model/documents/compare.js';
import type { Side } from './side.js';

type Row = CompareResult['gemm_tiles'][number];

/**
 * Tiles of the same GEMM in each session. If all instances have the same number of GEMMs, the n-th of each has the same
 * role. Otherwise (fused projections, split-K) the tiles are listed by frequency. Only changes are returned.
 */
export function gemmTiles(sides: readonly Side[]): Row[] {
  const phases = [...new Set(sides.flatMap(({ gemms }) => gemms.map(({ phase }) => phase)))];
  return phases.flatMap((phase) => {
    const sequences = sides.map(({ gemms }) => gemms.find((gemm) => gemm.phase === phase)?.tiles ?? []);
    if (sequences.some((tiles) => tiles.length === 0)) return [];
    const [first] = sequences;
    const byPlace = sequences.every((tiles) => tiles.length === first!.length);
    return byPlace ? matchedByPlace(phase, sequences) : matchedByShare(phase, sequences);
  });
}

function matchedByPlace(phase: string, sequences: string[][]): Row[] {
  const rows = new Map<string, Row>();
  for (const index of sequences[0]!.keys()) {
    const tiles = sequences.map((sequence) => sequence[index]!);
    if (new Set(tiles).size < 2) continue;
    const row = rows.get(tiles.join('\n')) ?? { phase, count: 0, tiles, matched_by: 'position' };
    row.count += 1;
    rows.set(tiles.join('\n'), row);
  }
  return [...rows.values()].toSorted((a, b) => b.count - a.count);
}

/** Tiles with different frequencies between sessions: "28 × 64x8x64" against "20 × 64x8x64". */
function matchedByShare(phase: string, sequences: string[][]): Row[] {
  const all = [...new Set(sequences.flat())];
  return all
    .map((tile) => sequences.map((sequence) => sequence.filter((entry) => entry === tile).length))
    .map((counts, index) => ({ tile: all[index]!, counts }))
    .filter(({ counts }) => new Set(counts).size > 1)
    .map(({ tile, counts }): Row => ({
      phase,
      count: Math.max(...counts),
      tiles: counts.map((count) => (count === 0 ? '–' : `${count} × ${tile}`)),
      matched_by: 'share',
    }))
    .toSorted((a, b) => b.count - a.count || a.tiles[0]!.localeCompare(b.tiles[0]!, 'en'));
}
