import type { CompareResult } from '../../model/documents/compare.js';
import type { Side } from './side.js';

type Row = CompareResult['gemm_tiles'][number];

/**
 * Tiles of the same GEMM in each session: the n-th GEMM of an instance plays the same role where all instances have
 * as many of them. Where they do not (fused projections, split-K), the tiles are listed side by side by frequency.
 * Only what changed.
 */
export function gemmTiles(sides: readonly Side[]): Row[] {
  const phases = [...new Set(sides.flatMap(({ gemms }) => gemms.map(({ phase }) => phase)))];
  return phases.flatMap((phase) => {
    const sequences = sides.map(({ gemms }) => gemms.find((one) => one.phase === phase)?.tiles ?? []);
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
    const row = rows.get(tiles.join('\n')) ?? { phase, count: 0, tiles, matched_by: 'place' };
    row.count += 1;
    rows.set(tiles.join('\n'), row);
  }
  return [...rows.values()].toSorted((a, b) => b.count - a.count);
}

function matchedByShare(phase: string, sequences: string[][]): Row[] {
  const frequencies = sequences.map((sequence) => {
    const counts = new Map<string, number>();
    for (const tile of sequence) counts.set(tile, (counts.get(tile) ?? 0) + 1);
    return [...counts].toSorted((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  });
  const told = frequencies.map((counts) => counts.map(([tile, count]) => `${count} × ${tile}`).join(', '));
  if (new Set(told).size < 2) return [];
  return [
    { phase, count: Math.max(...sequences.map(({ length }) => length)), tiles: told, matched_by: 'share' },
  ];
}
