import { seededRandom } from '../../model/random.js';
import { halfInterval } from '../../model/half-interval.js';
import { studentTwoSidedP, studentTwoSidedT } from '../../model/student-t.js';
import { mean, standardDeviation } from '../../model/statistics.js';

/** A side's mean logarithm with its standard error. */
export interface LogMean {
  mean: number;
  standard_error: number;
  degrees_of_freedom: number;
}

export interface RatioTest {
  /** Second side / first side. */
  ratio: number;
  ci95: [number, number];
  /** Two-sided. */
  p: number;
  degrees_of_freedom: number;
}

/**
 * Mean logarithm of repeated values. Times and rates are positive with proportional noise, so logarithms have constant
 * variance and a difference is a ratio. Null with fewer than two values, or a value that is not positive.
 */
export function logMeanOf(values: readonly number[]): LogMean | null {
  if (values.length < 2 || values.some((value) => !(value > 0))) return null;
  const logs = values.map(Math.log);
  return {
    mean: mean(logs),
    standard_error: standardDeviation(logs) / Math.sqrt(logs.length),
    degrees_of_freedom: logs.length - 1,
  };
}

/** Mean logarithm of a figure with a 95 % interval over n values: d ln x = dx / x (delta method). */
export function logMeanOfInterval(value: number, n: number, ci95: readonly [number, number]): LogMean | null {
  const half = halfInterval({ value, ci95 });
  if (!(value > 0) || n < 2 || half === null) return null;
  const standard_error = half / studentTwoSidedT(0.05, n - 1) / value;
  return { mean: Math.log(value), standard_error, degrees_of_freedom: n - 1 };
}

/**
 * Welch's t-test for unequal variances (Welch 1947): t = Δ / √(s₁² + s₂²), ν = (s₁² + s₂²)² / (s₁⁴/ν₁ + s₂⁴/ν₂), s the
 * standard errors.
 */
export function ratioTest(from: LogMean, to: LogMean): RatioTest {
  const delta = to.mean - from.mean;
  const [a, b] = [from.standard_error ** 2, to.standard_error ** 2];
  const error = Math.sqrt(a + b);
  const ratio = Math.exp(delta);
  // Counts and sizes can be equal in every launch; rounding of their logarithms is not noise.
  if (error < 1e-12) {
    const equalMeans = Math.abs(delta) < 1e-12;
    const freedom = from.degrees_of_freedom + to.degrees_of_freedom;
    return { ratio, ci95: [ratio, ratio], p: equalMeans ? 1 : 0, degrees_of_freedom: freedom };
  }
  const freedom = (a + b) ** 2 / (a ** 2 / from.degrees_of_freedom + b ** 2 / to.degrees_of_freedom);
  const half = studentTwoSidedT(0.05, freedom) * error;
  return {
    ratio,
    ci95: [Math.exp(delta - half), Math.exp(delta + half)],
    p: studentTwoSidedP(Math.abs(delta) / error, freedom),
    degrees_of_freedom: freedom,
  };
}

/** A difference is called real if chance makes one as large in fewer than 5 % of comparisons. */
export const significanceLevel = 0.05;

const maxEnumerated = 20_000;
const sampleCount = 10_000;

/**
 * Permutation test of the difference of mean logarithms: how often do randomly assigned labels differ by as much? It
 * assumes no distribution. Up to 20 000 arrangements are all counted, otherwise 10 000 are drawn with a fixed seed.
 * @returns two-sided p; null if even that of the most extreme arrangement is above 0.05, or a value is not positive
 */
export function permutationP(from: readonly number[], to: readonly number[]): number | null {
  if ([...from, ...to].some((value) => !(value > 0))) return null;
  const [n, m] = [from.length, to.length];
  const arrangements = combinations(n + m, n);
  if ((n === m ? 2 : 1) / arrangements > significanceLevel) return null;
  const logs = [...from, ...to].map(Math.log);
  const total = logs.reduce((sum, value) => sum + value, 0);
  const difference = (first: number) => Math.abs(first / n - (total - first) / m);
  // The factor keeps rounding from making the observed arrangement less extreme than itself.
  const observed = difference(logs.slice(0, n).reduce((sum, value) => sum + value, 0)) * (1 - 1e-9);
  if (arrangements <= maxEnumerated) {
    let extreme = 0;
    for (const sum of sumsOfSubsets(logs, n)) if (difference(sum) >= observed) extreme++;
    return extreme / arrangements;
  }
  // A fixed seed: the same data give the same verdict.
  const random = seededRandom(1);
  let extreme = 1;
  for (let draw = 0; draw < sampleCount; draw++) {
    for (let i = 0; i < n; i++) {
      const swapIndex = i + Math.floor(random() * (logs.length - i));
      [logs[i], logs[swapIndex]] = [logs[swapIndex]!, logs[i]!];
    }
    let sum = 0;
    for (let i = 0; i < n; i++) sum += logs[i]!;
    if (difference(sum) >= observed) extreme++;
  }
  return extreme / (sampleCount + 1);
}

function combinations(n: number, k: number): number {
  let count = 1;
  for (let i = 1; i <= k; i++) count = (count * (n - k + i)) / i;
  return Math.round(count);
}

function* sumsOfSubsets(values: readonly number[], size: number, from = 0, sum = 0): Generator<number> {
  if (size === 0) {
    yield sum;
    return;
  }
  for (let i = from; i <= values.length - size; i++) {
    yield* sumsOfSubsets(values, size - 1, i + 1, sum + values[i]!);
  }
}

/**
 * Holm's correction (1979) keeps the probability of any false positive below the level. Sorted ascending, the i-th p of
 * m (from i = 0) is multiplied by m − i, and none may be smaller than the previous one.
 */
export function holm(ps: readonly number[]): number[] {
  const order = ps.map((p, index) => ({ p, index })).toSorted((a, b) => a.p - b.p);
  const adjusted = Array.from<number>({ length: ps.length });
  let highest = 0;
  for (const [rank, { p, index }] of order.entries()) {
    highest = Math.max(highest, Math.min(1, p * (ps.length - rank)));
    adjusted[index] = highest;
  }
  return adjusted;
}

/** A difference with the p of its test, and of a permutation test if that applies. */
interface Claim {
  p: number;
  permutation: number | null;
}

/**
 * Which of several differences are real: p is below 5 % after Holm's correction, and an applicable permutation test
 * agrees.
 */
export function realDifferences(claims: readonly Claim[]): { p_adjusted: number; real: boolean }[] {
  const adjusted = holm(claims.map(({ p }) => p));
  return claims.map(({ permutation }, i) => ({
    p_adjusted: adjusted[i]!,
    real: adjusted[i]! < significanceLevel && (permutation === null || permutation < significanceLevel),
  }));
}
