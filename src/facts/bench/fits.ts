import type { BenchFit, BenchPointResult } from '../../model/documents/bench.js';
import { studentT95 } from '../../model/student-t.js';
import { mean } from '../../model/statistics.js';
import { type Size, sweepOver, independentValues } from './sweeps.js';

interface FitResult {
  /** y = c[0] + c[1] x + c[2] x². */
  coefficients: number[];
  rss: number;
  /** Diagonal of (XᵀX)⁻¹; times the residual variance it is the variance of each coefficient. */
  unscaledVariances: number[];
}

/** Least squares by the normal equations, x scaled to at most 1 so that a square of 1000 loses no digits. */
export function leastSquares(xs: readonly number[], ys: readonly number[], degree: 1 | 2): FitResult {
  const scale = Math.max(...xs.map(Math.abs)) || 1;
  const size = degree + 1;
  const rows = Array.from({ length: size }, (_, i) => [
    ...Array.from({ length: size }, (__, j) => sum(xs, (x) => (x / scale) ** (i + j))),
    xs.reduce((total, x, k) => total + (x / scale) ** i * ys[k]!, 0),
    ...Array.from({ length: size }, (__, j) => (i === j ? 1 : 0)),
  ]);
  for (let i = 0; i < size; i++) {
    const pivot = rows.slice(i).reduce((best, row) => (Math.abs(row[i]!) > Math.abs(best[i]!) ? row : best));
    rows.splice(rows.indexOf(pivot), 1);
    rows.splice(i, 0, pivot);
    for (let k = 0; k < size; k++) {
      if (k === i) continue;
      const factor = rows[k]![i]! / pivot[i]!;
      rows[k] = rows[k]!.map((value, j) => value - factor * pivot[j]!);
    }
  }
  const coefficients = rows.map((row, i) => row[size]! / row[i]! / scale ** i);
  const rss = xs.reduce((total, x, k) => total + (ys[k]! - valueAt(coefficients, x)) ** 2, 0);
  const unscaledVariances = rows.map((row, i) => row[size + 1 + i]! / row[i]! / scale ** (2 * i));
  return { coefficients, rss, unscaledVariances };
}

const sum = (values: readonly number[], valueOf: (value: number) => number): number =>
  values.reduce((total, value) => total + valueOf(value), 0);

export function valueAt(coefficients: readonly number[], x: number): number {
  return coefficients.reduce((total, c, power) => total + c * x ** power, 0);
}

/**
 * Akaike's information criterion for small samples (Hurvich and Tsai 1989): n ln(RSS / n) + 2k + 2k(k + 1) / (n − k − 1),
 * where k counts the coefficients and the variance. Infinite if n is too small.
 */
export function aicc(n: number, coefficients: number, rss: number): number {
  const k = coefficients + 1;
  if (n - k - 1 <= 0) return Infinity;
  return n * Math.log(rss / n) + 2 * k + (2 * k * (k + 1)) / (n - k - 1);
}

/** Quadratic only if at least four sizes were measured and AICc supports it. */
function fit(xs: readonly number[], ys: readonly number[], square: boolean): FitResult {
  const line = leastSquares(xs, ys, 1);
  // The residual is rounding: no need for a quadratic term.
  const exact = line.rss <= 1e-20 * sum(ys, (y) => y * y);
  if (!square || exact || new Set(xs).size < 4) return line;
  const parabola = leastSquares(xs, ys, 2);
  return aicc(xs.length, 3, parabola.rss) < aicc(xs.length, 2, line.rss) ? parabola : line;
}

/** 95 % intervals of the coefficients by the scatter around the fit (Student); null without degrees of freedom. */
export function coefficientIntervals(
  { coefficients, rss, unscaledVariances }: FitResult,
  n: number,
): [low: number, high: number][] | null {
  const degrees = n - coefficients.length;
  if (degrees < 1) return null;
  return coefficients.map((value, i) => {
    const half = studentT95(degrees) * Math.sqrt((rss / degrees) * Math.max(0, unscaledVariances[i]!));
    return [value - half, value + half];
  });
}

/**
 * Direction of y from the smallest to the largest size. `none` if the change is less than the scatter around the fit or,
 * for a line, if the interval of its slope includes 0.
 */
export function trendOf({
  coefficients,
  coefficients_ci95,
  rms_error,
  points,
}: BenchFit): 'up' | 'down' | 'none' {
  const change = points.at(-1)!.fitted - points[0]!.fitted;
  // Less than 1e-9 is rounding.
  const minError = Math.max(rms_error, 1e-9) * mean(points.map(({ measured }) => measured));
  if (Math.abs(change) < minError) return 'none';
  const slope = coefficients.length === 2 ? coefficients_ci95?.[1] : undefined;
  if (slope && slope[0] <= 0 && slope[1] >= 0) return 'none';
  return change > 0 ? 'up' : 'down';
}

/** Scatter around a fit, as a share of the mean, above which coefficients are not reported as costs. */
export const poorFit = 0.25;

const fitSpecs: {
  id: BenchFit['id'];
  size: Size;
  x: string;
  y: string;
  metric: 'ttft_ms' | 'tpot_ms' | 'e2e_ms';
}[] = [
  { id: 'prompt', size: 'input_len', x: 'prompt tokens', y: 'TTFT', metric: 'ttft_ms' },
  { id: 'output', size: 'output_len', x: 'output tokens', y: 'end to end', metric: 'e2e_ms' },
  { id: 'batch_tpot', size: 'batch_size', x: 'batch size', y: 'TPOT', metric: 'tpot_ms' },
  { id: 'batch_ttft', size: 'batch_size', x: 'batch size', y: 'TTFT', metric: 'ttft_ms' },
];

/** Growth of times with each swept size, over launch means, so that the error includes scatter between launches. */
export function benchFits(points: readonly BenchPointResult[]): BenchFit[] {
  return fitSpecs.flatMap(({ id, size, x, y, metric }): BenchFit[] => {
    const sweep = sweepOver(points, size) ?? [];
    const sizes = sweep
      .map((point) => ({ x: point[size], values: independentValues(point, (repeat) => repeat[metric]) }))
      .filter(({ values }) => values.length > 0);
    // Two sizes always fit a line, so its error is unknown.
    if (sizes.length < 3) return [];
    const xs = sizes.flatMap((size) => size.values.map(() => size.x));
    const ys = sizes.flatMap(({ values }) => values);
    const fitted = fit(xs, ys, id === 'prompt');
    const { coefficients, rss } = fitted;
    const intervals = coefficientIntervals(fitted, xs.length);
    const center = mean(ys);
    const spread = sum(ys, (value) => (value - center) ** 2);
    return [
      {
        id,
        x,
        y,
        unit: 'ms',
        coefficients,
        ...(intervals === null ? {} : { coefficients_ci95: intervals }),
        n: xs.length,
        r2: spread > 0 ? 1 - rss / spread : 1,
        rms_error: Math.sqrt(rss / xs.length) / center,
        points: sizes.map((size) => ({
          x: size.x,
          measured: mean(size.values),
          fitted: valueAt(coefficients, size.x),
        })),
      },
    ];
  });
}
