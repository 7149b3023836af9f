export interface RankTest {
  /** Second side / first side: the Hodges–Lehmann estimate, the median of all pairwise ratios. */
  ratio: number;
  /** Exact inversion of the test over the pairwise ratios; null with too few values. */
  ci95: [number, number] | null;
  /** Mann–Whitney, two-sided. */
  p: number;
  /**
   * Whether p counts every arrangement; otherwise the normal approximation with corrections for ties and continuity.
   */
  exact: boolean;
  /** Share of pairs in which the second value is larger, ties count half. 0.5 means no difference. */
  superiority: number;
}

/** Above this number of values the normal approximation is correct to three digits. */
const maxExactValues = 60;
const maxPairs = 4_000_000;
const z975 = 1.959963984540054;

/**
 * Mann and Whitney's rank test (1947) with the estimate and interval of Hodges and Lehmann (1963), which agree: the
 * interval excludes 1 if p is below 0.05. It assumes no distribution, and one outlier weighs no more than any other
 * value. Times are compared as ratios.
 * @returns null with fewer than two values on a side, a value that is not positive, or too many pairs to sort
 */
export function rankTest(from: readonly number[], to: readonly number[]): RankTest | null {
  const [n, m] = [from.length, to.length];
  if (n < 2 || m < 2 || n * m > maxPairs) return null;
  if ([...from, ...to].some((value) => !(value > 0))) return null;
  const { doubled, tieTerm } = midranks([...from, ...to]);
  const second = doubled.slice(n).reduce((sum, rank) => sum + rank, 0);
  const exact = n + m <= maxExactValues;
  const p = exact ? exactP(doubled, n, second) : normalP(n, m, second / 2, tieTerm);
  const ratios = pairwiseLogRatios(from, to);
  const k = exact ? exactOrder(n, m) : Math.floor((n * m) / 2 - z975 * Math.sqrt(variance(n, m, 0)));
  return {
    ratio: Math.exp(medianOf(ratios)),
    ci95: k < 1 ? null : [Math.exp(ratios[k - 1]!), Math.exp(ratios[n * m - k]!)],
    p,
    exact,
    superiority: (second / 2 - (m * (m + 1)) / 2) / (n * m),
  };
}

/** The smallest possible p: the two most extreme arrangements. */
export function minP(n: number, m: number): number {
  let arrangements = 1;
  for (let i = 1; i <= n; i++) arrangements = (arrangements * (m + i)) / i;
  return Math.min(1, 2 / arrangements);
}

/** Values needed on each side for ranks to reach 0.05 after Holm's correction over this many metrics. */
export function minValuesPerSide(metrics: number): number {
  let each = 2;
  while (minP(each, each) * Math.max(1, metrics) >= 0.05) each++;
  return each;
}

/** Twice the midranks, which are integers even with ties, and Σ(t³ − t) over groups of ties. */
function midranks(values: readonly number[]): { doubled: number[]; tieTerm: number } {
  const order = values.map((_, index) => index).sort((a, b) => values[a]! - values[b]!);
  const doubled = Array.from<number>({ length: values.length });
  let tieTerm = 0;
  for (let begin = 0; begin < order.length;) {
    let end = begin + 1;
    while (end < order.length && values[order[end]!] === values[order[begin]!]) end++;
    for (let i = begin; i < end; i++) doubled[order[i]!] = begin + 1 + end;
    tieTerm += (end - begin) ** 3 - (end - begin);
    begin = end;
  }
  return { doubled, tieTerm };
}

/** Number of subsets of `size` with each sum, by dynamic programming over the values. */
function subsetCounts(values: readonly number[], size: number): Float64Array {
  const maxSum = values.reduce((sum, value) => sum + value, 0);
  const counts = Array.from({ length: size + 1 }, () => new Float64Array(maxSum + 1));
  counts[0]![0] = 1;
  for (const value of values) {
    for (let picked = size; picked >= 1; picked--) {
      const [current, fewer] = [counts[picked]!, counts[picked - 1]!];
      for (let sum = maxSum; sum >= value; sum--) current[sum]! += fewer[sum - value]!;
    }
  }
  return counts[size]!;
}

function exactP(doubled: readonly number[], n: number, second: number): number {
  const m = doubled.length - n;
  const counts = subsetCounts(doubled, m);
  // Twice the mean rank sum of the second side.
  const centre = m * (doubled.length + 1);
  let extreme = 0;
  let all = 0;
  for (const [sum, count] of counts.entries()) {
    all += count;
    if (Math.abs(sum - centre) >= Math.abs(second - centre)) extreme += count;
  }
  return Math.min(1, extreme / all);
}

/** The largest k with P(U ≤ k − 1) ≤ 0.025 under the null hypothesis without ties; 0 if there is none. */
function exactOrder(n: number, m: number): number {
  const ranks = Array.from({ length: n + m }, (_, index) => index + 1);
  const counts = subsetCounts(ranks, n);
  const minSum = (n * (n + 1)) / 2;
  const all = counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  let k = 0;
  while (below + counts[minSum + k]! <= 0.025 * all) below += counts[minSum + k++]!;
  return k;
}

function variance(n: number, m: number, tieTerm: number): number {
  const N = n + m;
  return ((n * m) / 12) * (N + 1 - tieTerm / (N * (N - 1)));
}

function normalP(n: number, m: number, rankSum: number, tieTerm: number): number {
  const away = Math.abs(rankSum - (m * (m + 1)) / 2 - (n * m) / 2) - 0.5;
  const spread = Math.sqrt(variance(n, m, tieTerm));
  return spread === 0 || away <= 0 ? 1 : Math.min(1, 2 * normalTail(away / spread));
}

/** P(Z > z): complementary error function by continued fraction or series (A&S 7.1.5, 7.1.14). */
function normalTail(z: number): number {
  const x = z / Math.SQRT2;
  if (x > 2) {
    let fraction = x;
    for (let k = 60; k >= 1; k--) fraction = x + k / 2 / fraction;
    return Math.exp(-x * x) / fraction / Math.sqrt(Math.PI) / 2;
  }
  let term = x;
  let series = x;
  for (let k = 1; k < 80; k++) {
    term *= (-x * x) / k;
    series += term / (2 * k + 1);
  }
  return 0.5 - series / Math.sqrt(Math.PI);
}

function pairwiseLogRatios(from: readonly number[], to: readonly number[]): Float64Array {
  const [before, after] = [from.map(Math.log), to.map(Math.log)];
  const ratios = new Float64Array(before.length * after.length);
  let index = 0;
  for (const b of before) for (const a of after) ratios[index++] = a - b;
  return ratios.sort();
}

function medianOf(sorted: Float64Array): number {
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
