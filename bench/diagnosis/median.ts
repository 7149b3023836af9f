export interface Median {
  median: number;
  low: number;
  high: number;
}

/** Median with its 95 % interval by order statistics: for 12 values the 3rd and the 10th (binomial, 96.1 %). */
export function medianOf(values: readonly number[]): Median {
  const sorted = values.toSorted((a, b) => a - b);
  const n = sorted.length;
  const middle = (sorted[Math.floor((n - 1) / 2)]! + sorted[Math.ceil((n - 1) / 2)]!) / 2;
  // Largest k for which the tails below the k-th and above the (n + 1 − k)-th value together have at most 5 %.
  let k = 0;
  for (let tail = 0, term = 0.5 ** n; k < n / 2; k++) {
    tail += term;
    if (2 * tail > 0.05) break;
    term = (term * (n - k)) / (k + 1);
  }
  return k === 0
    ? { median: middle, low: sorted[0]!, high: sorted[n - 1]! }
    : { median: middle, low: sorted[k - 1]!, high: sorted[n - k]! };
}
