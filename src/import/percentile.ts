/** Linear interpolation between order statistics: type 7, numpy's default. `sorted` ascending, not empty. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)]!;
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at));
}
