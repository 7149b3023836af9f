import { expect, test } from 'vitest';
import { openDatabase } from '../../session/database.js';
import { queryRows } from '../../session/query.js';
import { aicc, benchFits, coefficientIntervals, leastSquares, trendOf, valueAt } from './fits.js';
import { pointOf } from './test-bench.js';

test("the line equals DuckDB's regr_slope and regr_intercept", async () => {
  const xs = [10, 50, 200, 1000, 10, 50, 200, 1000];
  const ys = [3.1, 4.9, 11.2, 47.3, 2.8, 5.3, 10.7, 48.1];
  const values = xs.map((x, i) => `(${x}, ${ys[i]})`).join(', ');
  const database = await openDatabase();
  const [row] = await queryRows<{ slope: number; intercept: number; sse: number }>(
    database.connection,
    `SELECT regr_slope(y, x) AS slope, regr_intercept(y, x) AS intercept, regr_syy(y, x) * (1 - regr_r2(y, x)) AS sse
     FROM (VALUES ${values}) t(x, y)`,
    [],
  );
  await database.close();
  const { coefficients, rss } = leastSquares(xs, ys, 1);
  expect(coefficients[0]).toBeCloseTo(row!.intercept, 10);
  expect(coefficients[1]).toBeCloseTo(row!.slope, 12);
  expect(rss).toBeCloseTo(row!.sse, 8);
});

test('recovers a parabola: 7 + 0.02 x + 3e-6 x²', () => {
  const xs = [10, 50, 200, 1000, 4000];
  const { coefficients, rss } = leastSquares(
    xs,
    xs.map((x) => 7 + 0.02 * x + 3e-6 * x * x),
    2,
  );
  expect(coefficients[0]).toBeCloseTo(7, 9);
  expect(coefficients[1]).toBeCloseTo(0.02, 11);
  expect(coefficients[2]! / 3e-6).toBeCloseTo(1, 8);
  expect(rss).toBeLessThan(1e-18);
  expect(valueAt([1, 2, 3], 2)).toBe(17);
});

test('AICc by hand: 6 ln(12 / 6) + 2 · 3 + 2 · 3 · 4 / 2', () => {
  expect(aicc(6, 2, 12)).toBeCloseTo(6 * Math.log(2) + 6 + 12, 12);
  // With four values a parabola and its variance leave no degrees of freedom.
  expect(aicc(4, 3, 1)).toBe(Infinity);
});

const noise = [0.99, 1.01, 1];
const prompts = (ttft: (tokens: number) => number) =>
  [10, 50, 200, 1000].map((tokens) =>
    pointOf(
      ['sequence'],
      [1, tokens, 50],
      noise.map((value) => [ttft(tokens) * value, 5]),
    ),
  );

test('uses a quadratic term only if AICc supports it', () => {
  const [line] = benchFits(prompts((n) => 5 + 0.05 * n));
  expect(line).toMatchObject({ id: 'prompt', n: 12, unit: 'ms' });
  expect(line!.coefficients).toHaveLength(2);
  expect(line!.coefficients[1]).toBeCloseTo(0.05, 3);
  const [curve] = benchFits(prompts((n) => 5 + 0.01 * n + 1e-4 * n * n));
  expect(curve!.coefficients).toHaveLength(3);
  expect(curve!.coefficients[2]! / 1e-4).toBeCloseTo(1, 1);
  expect(curve!.points.map(({ x }) => x)).toEqual([10, 50, 200, 1000]);
  expect(curve!.points[3]!.measured).toBeCloseTo(115, 9);
});

test('a fit reports its error', () => {
  const points = [1, 2, 4].map((batch) => pointOf(['throughput'], [batch, 8, 8], [[10, 10 + batch]]));
  const tpot = benchFits(points).find(({ id }) => id === 'batch_tpot')!;
  expect(tpot.coefficients[0]).toBeCloseTo(10, 9);
  expect(tpot.coefficients[1]).toBeCloseTo(1, 9);
  expect(tpot.r2).toBeCloseTo(1, 12);
  // y = 11, 12, 15: the line is 9.5 + 1.357 x; residuals 1/7, −3/14, 1/14; RMS √(1/42) of a mean of 38/3.
  const bent = [1, 2, 4].map((batch, i) => pointOf(['throughput'], [batch, 8, 8], [[10, [11, 12, 15][i]!]]));
  const fit = benchFits(bent).find(({ id }) => id === 'batch_tpot')!;
  expect(fit.coefficients[1]).toBeCloseTo(19 / 14, 9);
  expect(fit.rms_error).toBeCloseTo(Math.sqrt((1 / 49 + 9 / 196 + 1 / 196) / 3) / (38 / 3), 9);
  // The error of a fit to two sizes is unknown.
  expect(benchFits(points.slice(0, 2))).toEqual([]);
});

test('intervals of a line by hand', () => {
  // x = 1, 2, 3, 4 and y = 2, 4, 5, 8: slope 1.9, intercept 0, residuals 0.1, 0.2, −0.7, 0.4; s² = 0.7 / 2, Sxx = 5.
  const fitted = leastSquares([1, 2, 3, 4], [2, 4, 5, 8], 1);
  const [constant, slope] = coefficientIntervals(fitted, 4)!;
  expect(fitted.coefficients[1]).toBeCloseTo(1.9, 12);
  expect(slope![1] - 1.9).toBeCloseTo(4.3027 * Math.sqrt(0.35 / 5), 4);
  expect(constant![1]).toBeCloseTo(4.3027 * Math.sqrt(0.35 * (1 / 4 + 6.25 / 5)), 4);
  expect(coefficientIntervals(leastSquares([1, 2], [3, 4], 1), 2)).toBeNull();
});

test('does not report a slope within the noise', () => {
  const trend = (ttft: (tokens: number) => number) => trendOf(benchFits(prompts(ttft))[0]!);
  expect(trend((n) => 10 + 1e-5 * n)).toBe('none');
  expect(trend(() => 10)).toBe('none');
  expect(trend((n) => 10 + 0.01 * n)).toBe('up');
  expect(trend((n) => 10 - 0.002 * n)).toBe('down');
});
