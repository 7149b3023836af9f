import { describe, expect, test } from 'vitest';
import { percentile, standardDeviation } from '../model/statistics.js';
import { studentT95 } from '../model/student-t.js';
import { openDatabase } from '../session/database.js';
import { queryRows } from '../session/query.js';
import { meanOverLaunches, outlierTest } from './statistics.js';

// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975.
const printed =
  `12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086
  2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042 2.040 2.037 2.035 2.032 2.030 2.028 2.026 2.024 2.023 2.021`
    .split(/\s+/)
    .map(Number);

test("Student's t equals the printed table in every digit", () => {
  expect(printed).toHaveLength(40);
  for (const [i, t] of printed.entries()) {
    expect(Math.abs(studentT95(i + 1) - t), `df ${i + 1}`).toBeLessThanOrEqual(0.00051);
  }
  expect(studentT95(60)).toBeCloseTo(2.0, 3);
  expect(studentT95(120)).toBeCloseTo(1.98, 3);
  expect(studentT95(1e9)).toBeCloseTo(1.959964, 6);
});

describe('percentiles of type 7', () => {
  test("numpy's published example", () => {
    // numpy.percentile's docstring: a = [[10, 7, 4], [3, 2, 1]]; np.percentile(a, 50) is 3.5.
    expect(percentile([1, 2, 3, 4, 7, 10], 0.5)).toBe(3.5);
    // R's quantile(1:10), type 7 by default: 25 % 3.25, 75 % 7.75.
    const ten = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    expect([percentile(ten, 0.25), percentile(ten, 0.75)]).toEqual([3.25, 7.75]);
    expect([percentile(ten, 0), percentile(ten, 1), percentile([5], 0.99)]).toEqual([1, 10, 5]);
  });

  test("equals DuckDB's quantile_cont", async () => {
    const values = Array.from({ length: 101 }, (_, i) => Math.sin(i * 12.9898) * 43.5).sort((x, y) => x - y);
    const database = await openDatabase();
    try {
      for (const share of [0.05, 0.5, 0.9, 0.95, 0.99]) {
        const [row] = await queryRows<{ q: number }>(
          database.connection,
          `SELECT quantile_cont(v, ${share}) AS q FROM (SELECT unnest([${values.join(',')}]::DOUBLE[]) AS v)`,
          [],
        );
        expect(percentile(values, share)).toBeCloseTo(row!.q, 10);
      }
    } finally {
      await database.close();
    }
  });
});

describe('mean over launches', () => {
  const figureOf = (...values: [launch: number, value: number][]) =>
    meanOverLaunches(
      values.map(([launch, value]) => ({ launch, value })),
      'ms',
      's',
    );

  test("several launches: Student's t over their means", () => {
    const figure = figureOf([0, 10], [0, 12], [1, 20], [1, 22]);
    // Launch means 11 and 21: s = √50, s/√2 = 5, t(1) = 12.7062. Over repeats sd = √(104/3).
    expect(figure).toMatchObject({ value: 16, unit: 'ms', n: 4, ci95_over: { unit: 'launches', n: 2 } });
    if (figure.value === null) throw new Error('missing');
    expect(figure.sd).toBeCloseTo(Math.sqrt(104 / 3), 12);
    // 16 − 63.5 is below 0, and the interval stops at 0.
    expect(figure.ci95![0]).toBe(0);
    expect(figure.ci95![1]).toBeCloseTo(16 + 63.531, 3);
  });

  test('one launch: the interval is over its repeats', () => {
    const figure = figureOf([0, 1], [0, 2], [0, 3]);
    if (figure.value === null) throw new Error('missing');
    expect(figure.ci95_over).toBeUndefined();
    // s = 1, t(2) = 4.3027, √3.
    expect(figure.ci95![1] - 2).toBeCloseTo(4.3027 / Math.sqrt(3), 4);
  });

  test('one repeat has no interval; no repeat is missing with a reason', () => {
    expect(figureOf([0, 7])).toEqual({ value: 7, unit: 'ms', source: 's', n: 1 });
    expect(figureOf()).toMatchObject({ value: null, reason: { code: 'no_repeats' } });
  });
});

test('sample standard deviation', () => {
  // Wikipedia's "standard deviation": 2, 4, 4, 4, 5, 5, 7, 9 has a sum of squares of 32; n − 1 = 7.
  expect(standardDeviation([2, 4, 4, 4, 5, 5, 7, 9])).toBeCloseTo(Math.sqrt(32 / 7), 12);
});

test("Tukey's fences: quartiles 2.5 and 5.5, fences at −2 and 10", () => {
  // Sorted 1 2 3 4 5 6 100: n = 7, q1 = 2.5, q3 = 5.5.
  const isOutlier = outlierTest([1, 2, 3, 4, 5, 6, 100]);
  expect([100, 10.01, 10, -2, -2.01].map(isOutlier)).toEqual([true, true, false, false, true]);
  expect(outlierTest([1, 2, 1000])(1000)).toBe(false);
});
