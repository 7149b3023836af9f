import type { Gemm, GemmWhatIf } from '../../model/documents/gemms.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import type { GpuRoofs } from '../roofs.js';
import { type DTypeRoof, dtypeRoof, roofSeconds } from './roof.js';
import { elementBytes } from './shape.js';
import { formatFactor, formatPercent } from '../../vocabulary/format.js';

/** Minimum gain; smaller ones are within run-to-run variation. */
const minGain = 1.05;
/** Minimum number of aligned shapes for an expected roof share. */
const minPeers = 3;

/**
 * Expected gain of other sizes of a GEMM: more rows (tokens) in the same time, sizes that tensor cores load at once,
 * and output features that fill the tiles. These are models, not measurements; the figures' source names the model.
 * @param all GEMMs of the session; the aligned ones give the expected roof share of a padded GEMM
 */
export function whatIfs(gemm: Gemm, all: readonly Gemm[], smCount: Figure, roofs: GpuRoofs): GemmWhatIf[] {
  const roof = dtypeRoof(gemm.dtype, roofs);
  if ('value' in roof) return [];
  return [rowsWhatIf(gemm, smCount, roof), alignWhatIf(gemm, all, roof), fillWhatIf(gemm)].filter(
    (change) => change !== null,
  );
}

/**
 * Maximum rows for about the same time. Memory-bound: until the traffic has grown by `maxTrafficGrowth`, or arithmetic takes as
 * long as the traffic. Compute-bound: until the tiles fill their last wave.
 */
function rowsWhatIf(gemm: Gemm, smCount: Figure, roof: DTypeRoof): GemmWhatIf | null {
  if (gemm.batch !== 1) return null;
  const memory = roofSeconds(gemm, roof).bound === 'memory';
  const ridge = memory ? ridgeRows(gemm, roof) : 0;
  const m = memory ? Math.min(flatRows(gemm), ridge) : waveRows(gemm, smCount);
  if (m === null || m < minGain * gemm.m) return null;
  const ratio = memory ? roofSeconds({ ...gemm, m }, roof).seconds / roofSeconds(gemm, roof).seconds : 1;
  const gain = m / gemm.m / ratio;
  if (gain < minGain) return null;
  const model = memory ? ridgeModel : waveModel;
  const longer = ratio < 1.005 ? 'takes the same time' : `takes ${formatPercent(ratio - 1)} longer`;
  const until = !memory
    ? ''
    : ridge === Infinity
      ? '; memory-bound at any M'
      : `; memory-bound up to M = ${ridge}`;
  return {
    change: 'rows',
    m,
    n: gemm.n,
    k: gemm.k,
    time_ratio: figure(ratio, 'ratio', model),
    rate_ratio: figure(gain, 'ratio', `rows / time; ${model}`),
    text: `M = ${m} ${longer}, with ${formatFactor(gain)} the rows per second${until}`,
  };
}

const ridgeModel = 'time is proportional to the bytes moved, at the current share of the roof';
const waveModel = 'time is proportional to whole waves of this tile, with one tile per SM at a time';

/** Growth of traffic that still counts as the same time. */
const maxTrafficGrowth = 0.05;

/** Rows at which A and the output have made the traffic larger by a share g: M + g·(MK + KN + MN) / (K + N). */
export function flatRows({ m, n, k }: Pick<Gemm, 'm' | 'n' | 'k'>): number {
  return Math.floor(m + (maxTrafficGrowth * (m * k + k * n + m * n)) / (k + n));
}

const alignModel = 'padded GEMMs reach the same share of the roof as aligned ones of this session';

/**
 * Rows at which arithmetic takes as long as the traffic: M* = r·b·K·N / (2·N·K − r·b·(K + N)), with the ridge r in
 * FLOP/byte and b bytes per value, from 2MNK / (b(MK + KN + MN)) = r. Infinity if it is memory-bound at any number of
 * rows.
 */
export function ridgeRows(
  { n, k }: Pick<Gemm, 'n' | 'k'>,
  { peak, bandwidth, elementSize }: Pick<DTypeRoof, 'peak' | 'bandwidth' | 'elementSize'>,
): number {
  const bytesAtRidge = (peak / bandwidth) * elementSize;
  const denominator = 2 * n * k - bytesAtRidge * (k + n);
  return denominator <= 0 ? Infinity : Math.floor((bytesAtRidge * k * n) / denominator);
}

/** Rows that fit without another wave of tiles; null if tile, splits or SMs are unknown. */
export function waveRows({ tilings, m }: Pick<Gemm, 'tilings' | 'm'>, smCount: Figure): number | null {
  const [tiling] = tilings;
  const tile = /^(\d+)x(\d+)/.exec(tiling?.tile ?? '');
  if (!tiling || !tile || tiling.tiles.value === null || smCount.value === null) return null;
  // The library's M, first in a tile, is our N (tiling.ts).
  const alongM = Number(tile[2]);
  const tilesAlongM = Math.ceil(m / alongM);
  // Splits of K and batch multiply every tile.
  const tilesPerRow = tiling.tiles.value / tilesAlongM;
  const room = Math.ceil(tiling.tiles.value / smCount.value) * smCount.value;
  return Math.floor(room / tilesPerRow) * alongM;
}

/** N and K padded to multiples of 16 bytes, at the roof share of aligned GEMMs. */
function alignWhatIf(gemm: Gemm, all: readonly Gemm[], roof: DTypeRoof): GemmWhatIf | null {
  if (gemm.alignment_faults.length === 0) return null;
  const multiple = 16 / (elementBytes(gemm.dtype) ?? 2);
  const padTo = (size: number) => Math.ceil(size / multiple) * multiple;
  const padded = { ...gemm, n: padTo(gemm.n), k: padTo(gemm.k) };
  const currentShare = gemm.roof?.share ?? missing('no_time', 'its time is not known');
  const peers = all
    .filter(
      (peer) =>
        peer.alignment_faults.length === 0 &&
        peer.dtype === gemm.dtype &&
        peer.source === gemm.source &&
        peer.roof?.bound === gemm.roof?.bound &&
        // The library chooses kernels by rows, so only GEMMs with similar rows compare.
        peer.m <= 4 * gemm.m &&
        gemm.m <= 4 * peer.m,
    )
    .map(({ roof: peerRoof }) => peerRoof?.share.value ?? null)
    .filter((share) => share !== null)
    .toSorted((x, y) => x - y);
  const sizes = (['n', 'k'] as const)
    .filter((name) => padded[name] !== gemm[name])
    .map((name) => `${name.toUpperCase()} ${gemm[name]} → ${padded[name]}`)
    .join(', ');
  const roofRatio = roofSeconds(padded, roof).seconds / roofSeconds(gemm, roof).seconds;
  const base = { change: 'align' as const, m: gemm.m, n: padded.n, k: padded.k };
  if (currentShare.value === null || peers.length < minPeers) {
    const why =
      currentShare.value === null
        ? currentShare
        : missing('no_peers', 'too few aligned GEMMs of its type and rows have times to compare with');
    return {
      ...base,
      time_ratio: why,
      rate_ratio: why,
      text: `${sizes}: tensor cores load 16 bytes at once; the padding adds ${formatPercent(roofRatio - 1)} of roofline time, and the gain is not known here`,
    };
  }
  const peerShare = peers[Math.floor((peers.length - 1) / 2)]!;
  const ratio = (roofRatio * currentShare.value) / peerShare;
  if (1 / ratio < minGain) return null;
  return {
    ...base,
    time_ratio: figure(ratio, 'ratio', alignModel),
    rate_ratio: figure(1 / ratio, 'ratio', alignModel),
    text: `${sizes}: ${formatFactor(1 / ratio)} as fast, at ${formatPercent(peerShare)} of the roof as aligned GEMMs (median of ${peers.length})`,
  };
}

/** The edge tile computes its full width, so additional output features in it are free in the wave model. */
function fillWhatIf(gemm: Gemm): GemmWhatIf | null {
  const [tiling] = gemm.tilings;
  const alongN = Number(/^(\d+)x/.exec(tiling?.tile ?? '')?.[1] ?? Number.NaN);
  if (!(alongN > 0)) return null;
  const n = Math.ceil(gemm.n / alongN) * alongN;
  const gain = n / gemm.n;
  if (gain < minGain) return null;
  const model = 'edge tiles take as long as whole ones';
  return {
    change: 'fill_n',
    m: gemm.m,
    n,
    k: gemm.k,
    time_ratio: figure(1, 'ratio', model),
    rate_ratio: figure(gain, 'ratio', model),
    text: `N ${gemm.n} leaves ${formatPercent(1 - 1 / gain)} of its tiles unused: up to ${n} output features take the same time${n > alongN ? `, ${n - alongN} need a row of tiles less` : ''}`,
  };
}
