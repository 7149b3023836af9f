import type { Gemm } from '../model/documents/gemms.js';

/** "64×1408×512", "1×64×32 × 8" for a batched GEMM. */
export const shapeLabel = ({ m, n, k, batch }: Pick<Gemm, 'm' | 'n' | 'k' | 'batch'>): string =>
  `${m}×${n}×${k}${batch > 1 ? ` × ${batch}` : ''}`;
