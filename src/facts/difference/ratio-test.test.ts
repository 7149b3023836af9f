import { describe, expect, test } from 'vitest';
import { studentTwoSidedP, studentTwoSidedT } from '../../model/student-t.js';
import {
  holm,
  logMeanOf,
  logMeanOfInterval,
  permutationP,
  ratioTest,
  realDifferences,
} from './ratio-test.js';

// scipy 1.17.1: 2 * stats.t.sf(t, v), stats.t.ppf(0.975, v)
describe("Student's t equals scipy's", () => {
  test.each([
    [2, 3.5, 0.12613852257591343],
    [1, 1, 0.5],
    [0.5, 10, 0.627893605742973],
    [4.2, 7.31, 0.0036638544252769463],
    [12, 2.2, 0.004783413875517491],
    [2.5, 60, 0.015170780234888529],
  ])('P(|T| > %d), %d degrees of freedom', (t, v, p) => {
    expect(studentTwoSidedP(t, v)).toBeCloseTo(p, 12);
  });
  test.each([
    [1, 12.706204736174694],
    [1.5, 6.016663104427929],
    [2.7, 3.3921483831737507],
    [7.31, 2.344447113983294],
    [30, 2.0422724563012378],
    [200, 1.9718962236339088],
  ])('the 97.5 % quantile, %d degrees of freedom', (v, t) => {
    expect(studentTwoSidedT(0.05, v)).toBeCloseTo(t, 7);
  });
});

const before = [10.1, 10.3, 9.9, 10.2];
const after = [11.0, 10.6, 11.3, 10.9, 11.1];
const wideBefore = [10.1, 10.9, 9.9, 10.6];
const wideAfter = [11.0, 10.2, 11.3, 10.4, 11.1];

describe('ratio of two sides', () => {
  // scipy 1.17.1: stats.ttest_ind(log(after), log(before), equal_var=False), exp(confidence_interval(0.95))
  test('a change larger than the noise', () => {
    const result = ratioTest(logMeanOf(before)!, logMeanOf(after)!);
    expect(result.ratio).toBeCloseTo(1.0843183387184558, 12);
    expect(result.p).toBeCloseTo(0.0005695355017232194, 10);
    expect(result.degrees_of_freedom).toBeCloseTo(6.957578004235715, 9);
    expect(result.ci95[0]).toBeCloseTo(1.05008298, 7);
    expect(result.ci95[1]).toBeCloseTo(1.11966985, 7);
  });
  test('a change within the noise', () => {
    const result = ratioTest(logMeanOf(wideBefore)!, logMeanOf(wideAfter)!);
    expect(result.p).toBeCloseTo(0.22007225147253234, 10);
    expect(result.degrees_of_freedom).toBeCloseTo(6.58234632966571, 9);
    expect(result.ci95[0]).toBeCloseTo(0.96968379, 7);
    expect(result.ci95[1]).toBeCloseTo(1.11736856, 7);
  });
  test('swapping the sides gives the reciprocal', () => {
    const forward = ratioTest(logMeanOf(before)!, logMeanOf(after)!);
    const back = ratioTest(logMeanOf(after)!, logMeanOf(before)!);
    expect(back.ratio).toBeCloseTo(1 / forward.ratio, 12);
    expect(back.ci95[0]).toBeCloseTo(1 / forward.ci95[1], 12);
    expect(back.p).toBeCloseTo(forward.p, 12);
  });
  test('an interval alone: 100 ± 12.706 over two values has a standard error of 1, 1 % of the value', () => {
    const result = logMeanOfInterval(100, 2, [100 - 12.706204736, 100 + 12.706204736])!;
    expect(result.standard_error).toBeCloseTo(0.01, 9);
    expect(result.degrees_of_freedom).toBe(1);
  });
  test('sizes without noise are equal or different', () => {
    const constant = logMeanOf([4096, 4096])!;
    expect(ratioTest(constant, logMeanOf([4096, 4096])!).p).toBe(1);
    expect(ratioTest(constant, logMeanOf([8192, 8192])!)).toMatchObject({ p: 0, ci95: [2, 2] });
  });
  test('one value, or values without a logarithm, have no spread', () => {
    expect(logMeanOf([3])).toBeNull();
    expect(logMeanOf([3, 0])).toBeNull();
    expect(logMeanOfInterval(100, 2, [0, 227.06204736])!.standard_error).toBeCloseTo(0.1, 8);
    expect(logMeanOfInterval(3, 1, [3, 3])).toBeNull();
  });
});

describe('permutation test', () => {
  // All C(9, 4) = 126 arrangements counted with itertools.combinations. 1 and 30 are equally extreme.
  test('counts every arrangement', () => {
    expect(permutationP(before, after)).toBeCloseTo(1 / 126, 12);
    expect(permutationP(wideBefore, wideAfter)).toBeCloseTo(30 / 126, 12);
  });
  test('three against three have 20 arrangements: 2 / 20 is never below 0.05', () => {
    expect(permutationP([1, 2, 3], [10, 20, 30])).toBeNull();
  });
  test('samples arrangements if there are too many, and still separates a clear difference from none', () => {
    const low = Array.from({ length: 12 }, (_, i) => 10 + (i % 4) * 0.1);
    const high = low.map((value) => value * 1.2);
    expect(permutationP(low, high)).toBeLessThan(0.001);
    expect(permutationP(low, [...low].reverse())).toBeGreaterThan(0.5);
    expect(permutationP(low, high)).toBe(permutationP(low, high));
  });
});

test("Holm's correction by hand: 0.01 × 3, 0.03 × 2, and never below the previous p", () => {
  const result = holm([0.01, 0.04, 0.03]);
  for (const [i, p] of [0.03, 0.06, 0.06].entries()) expect(result[i]).toBeCloseTo(p, 12);
  expect(holm([0.7, 0.9])).toEqual([1, 1]);
  expect(holm([])).toEqual([]);
});

test('a difference is real below 5 % after the correction, unless an applicable permutation test disagrees', () => {
  const verdicts = realDifferences([
    { p: 0.01, permutation: null },
    { p: 0.001, permutation: 0.2 },
    { p: 0.04, permutation: 0.01 },
  ]);
  expect(verdicts.map(({ real }) => real)).toEqual([true, false, true]);
  expect(verdicts.map(({ p_adjusted }) => p_adjusted)).toEqual([0.02, 0.003, 0.04]);
  expect(
    realDifferences([0.04, 0.03].map((p) => ({ p, permutation: null }))).some((claim) => claim.real),
  ).toBe(false);
});
