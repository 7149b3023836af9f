import { describe, expect, test } from 'vitest';
import { minP, minValuesPerSide, rankTest } from './rank-test.js';

const before = [10.1, 10.3, 9.9, 10.2];
const after = [11.0, 10.6, 11.3, 10.9, 11.1];
const wideBefore = [10.1, 10.9, 9.9, 10.6];
const wideAfter = [11.0, 10.2, 11.3, 10.4, 11.1];

// scipy 1.17.1: stats.mannwhitneyu(after, before, method='exact'). Estimate and interval with numpy: the median of the
// sorted differences of logarithms, and the k-th from each end, with k from itertools.combinations over the ranks.
describe('exact test, against scipy and an enumeration', () => {
  test('no overlap: 2 of 126 arrangements', () => {
    const result = rankTest(before, after)!;
    expect(result.exact).toBe(true);
    expect(result.p).toBeCloseTo(0.015873015873015872, 14);
    expect(result.superiority).toBe(1);
    expect(result.ratio).toBeCloseTo(1.0837122076904286, 12);
    expect(result.ci95![0]).toBeCloseTo(1.0392156862745099, 12);
    expect(result.ci95![1]).toBeCloseTo(1.121212121212121, 12);
  });
  test('with overlap: U = 16 of 20', () => {
    const result = rankTest(wideBefore, wideAfter)!;
    expect(result.p).toBeCloseTo(0.19047619047619047, 14);
    expect(result.superiority).toBe(0.8);
    expect(result.ratio).toBeCloseTo(1.0372164183830048, 12);
    expect(result.ci95![0]).toBeCloseTo(0.9541284403669725, 12);
    expect(result.ci95![1]).toBeCloseTo(1.121212121212121, 12);
  });
  test('ties use midranks: 20 of 924 arrangements', () => {
    const result = rankTest([10, 10, 11, 12, 12, 13], [12, 13, 13, 14, 15, 15])!;
    expect(result.p).toBeCloseTo(20 / 924, 14);
    expect(result.ratio).toBeCloseTo(1.2, 12);
    expect(result.ci95![0]).toBeCloseTo(14 / 13, 12);
    expect(result.ci95![1]).toBeCloseTo(1.4, 12);
  });
  test('swapping the sides gives the reciprocal ratio, and the interval agrees with p', () => {
    const [forward, back] = [rankTest(before, after)!, rankTest(after, before)!];
    expect(back.ratio).toBeCloseTo(1 / forward.ratio, 12);
    expect(back.ci95![0]).toBeCloseTo(1 / forward.ci95![1], 12);
    expect(back.p).toBe(forward.p);
  });
});

test('many values: normal approximation with ties and continuity correction, against scipy', () => {
  const from = Array.from({ length: 40 }, (_, k) => 1 + ((k * 37) % 101) / 1000);
  const to = Array.from({ length: 45 }, (_, k) => 1.01 + ((k * 53) % 97) / 1000);
  const result = rankTest(from, to)!;
  expect(result.exact).toBe(false);
  // stats.mannwhitneyu(to, from, method='asymptotic', use_continuity=True); k = floor(nm/2 − z √(nm(N+1)/12)) = 677
  expect(result.p).toBeCloseTo(0.4103362486796601, 10);
  expect(result.ratio).toBeCloseTo(1.0049044225465802, 12);
  expect(result.ci95![0]).toBeCloseTo(0.9922854387656702, 12);
  expect(result.ci95![1]).toBeCloseTo(1.0177690029615005, 12);
});

test('the smallest p that ranks can reach: 2 / C(n + m, n)', () => {
  expect(minP(3, 3)).toBeCloseTo(0.1, 14);
  expect(minP(4, 4)).toBeCloseTo(2 / 70, 14);
  expect(minP(5, 4)).toBeCloseTo(2 / 126, 14);
  // 2/70 · 1 < 0.05; 2/70 · 2 > 0.05 but 2/252 · 6 < 0.05; 2/924 · 20 < 0.05.
  expect([1, 2, 6, 7, 20, 23].map(minValuesPerSide)).toEqual([4, 5, 5, 6, 6, 6]);
  expect(rankTest([1, 2, 3], [10, 20, 30])).toMatchObject({ p: 0.1, ci95: null });
});

test('inputs that cannot be ranked', () => {
  expect(rankTest([1], [1, 2])).toBeNull();
  expect(rankTest([1, 0], [1, 2])).toBeNull();
  expect(rankTest([5, 5, 5, 5], [5, 5, 5, 5])).toMatchObject({
    p: 1,
    ratio: 1,
    superiority: 0.5,
    ci95: [1, 1],
  });
});
