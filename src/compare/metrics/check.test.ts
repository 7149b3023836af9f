import { describe, expect, test } from 'vitest';
import type { Baseline, SampledMetric } from '../../model/documents/baseline.js';
import { checkBaseline } from './check.js';
import { partOfRepeats, pooled } from './metric-parts.js';
import { metric } from './test-metric.js';

const baseline = (metrics: SampledMetric[], identity: Baseline['identity'] = []): Baseline => ({
  name: 'main',
  set_at: '2026-11-21T00:00:00.000Z',
  sessions: [],
  identity,
  metrics,
});
const check = (
  from: SampledMetric[],
  to: SampledMetric[],
  { tolerance = 0.05, withinProcess = false } = {},
) => checkBaseline(baseline(from), { sessions: [], identity: [], metrics: to }, { tolerance, withinProcess });

const before = [10.1, 10.3, 9.9, 10.2];
const after = [11.0, 10.6, 11.3, 10.9, 11.1];

describe('one metric', () => {
  test('8.4 % worse with p = 0.0006 is a regression at 5 % tolerance, tolerated at 10 %, and an improvement in the other direction', () => {
    const found = check([metric(before)], [metric(after)]);
    expect(found.result).toBe('regression');
    expect(found.comparisons[0]).toMatchObject({ verdict: 'regression', n: [4, 5], basis: 'launches' });
    // scipy, as in two-sides.test.ts.
    expect(found.comparisons[0]!.change).toBeCloseTo(0.0843183387184558, 12);
    expect(found.comparisons[0]!.p_adjusted).toBeCloseTo(0.0005695355017232194, 10);
    expect(found.comparisons[0]!.p_permutation).toBeCloseTo(1 / 126, 12);
    expect(found.comparisons[0]!.text).toBe('worse: +8.4 % (+5.0 % to +12 %), more than the 5 % tolerated');
    expect(check([metric(before)], [metric(after)], { tolerance: 0.1 })).toMatchObject({
      result: 'passed',
      comparisons: [{ verdict: 'within_tolerance' }],
    });
    expect(check([metric(after)], [metric(before)])).toMatchObject({
      result: 'passed',
      headline: 'No metric became worse by more than 5 %. Better: TPOT.',
      comparisons: [{ verdict: 'improvement' }],
    });
  });

  test('a rate is worse if it falls', () => {
    const rate = { better: 'higher' as const };
    expect(check([metric(after, rate)], [metric(before, rate)]).comparisons[0]!.verdict).toBe('regression');
    expect(check([metric(before, rate)], [metric(after, rate)]).comparisons[0]!.verdict).toBe('improvement');
  });

  test('an interval inside the tolerance is no change, one beyond it is undecided', () => {
    const still = [10.0, 10.02, 9.98, 10.01];
    expect(check([metric(still)], [metric([10.01, 9.99, 10.02, 10.0])]).comparisons[0]!.verdict).toBe(
      'unchanged',
    );
    const wide = check([metric([10.1, 10.9, 9.9, 10.6])], [metric([11.0, 10.2, 11.3, 10.4, 11.1])]);
    expect(wide).toMatchObject({ result: 'undecided', comparisons: [{ verdict: 'inconclusive' }] });
    expect(wide.comparisons[0]!.text).toContain('but +12 % is not ruled out');
    // Noise only in the better direction: no sign of a regression.
    expect(
      check([metric([10.0, 11.4, 10.2, 11.2])], [metric([9.6, 10.1, 9.7, 9.9])]).comparisons[0]!.verdict,
    ).toBe('no_worse');
  });

  test('one value per side gives no verdict for any change', () => {
    const found = check([metric(before)], [metric([20])]);
    expect(found).toMatchObject({
      result: 'undecided',
      comparisons: [{ verdict: 'no_spread', p: null, p_adjusted: null, basis: 'none', n: [4, 1] }],
    });
    expect(found.comparisons[0]!.text).toContain('nothing is claimed');
  });

  test('repeats of one process give no verdict, unless requested', () => {
    const within = { basis: 'repeats' as const };
    const found = check([metric(before, within)], [metric(after, within)]);
    expect(found).toMatchObject({
      result: 'undecided',
      comparisons: [{ verdict: 'within_process', p_adjusted: null, basis: 'repeats' }],
    });
    const withinProcess = check([metric(before, within)], [metric(after, within)], { withinProcess: true });
    expect(withinProcess.result).toBe('regression');
  });

  test('an interval over launches is enough, one over steps of a process is not', () => {
    const known = (value: number, over_launches: boolean): SampledMetric =>
      metric([value], {
        basis: 'interval',
        interval: { n: 5, ci95: [value * 0.99, value * 1.01], over_launches },
      });
    expect(check([known(10, true)], [known(11, true)]).comparisons[0]!.verdict).toBe('regression');
    expect(check([known(10, true)], [known(11, false)]).comparisons[0]!.verdict).toBe('within_process');
  });

  test('metrics missing on one side are reported without effect; no common metric is an error', () => {
    const ttft = (values: number[]) => metric(values, { id: 'ttft_ms', name: 'ttft_ms' });
    const found = check([metric(before), ttft(before)], [metric(before)]);
    expect(found.result).toBe('passed');
    expect(found.comparisons.map(({ verdict }) => verdict)).toEqual(['unchanged', 'missing']);
    expect(() => check([metric(before)], [ttft(after)])).toThrow('no metric in common');
  });
});

test('ten metrics that vary by chance have none that is significant, though p = 0.02 is for one alone', () => {
  const from = [10, 10.4, 10.1, 9.8, 10.2];
  const to = [10.5, 10.9, 10.4, 10.8, 10.3];
  const singleMetric = check([metric(from)], [metric(to)]);
  expect(singleMetric.comparisons[0]!.p).toBeGreaterThan(0.005);
  expect(singleMetric.comparisons[0]!.p).toBeLessThan(0.05);
  expect(singleMetric.comparisons[0]!.verdict).toBe('within_tolerance');
  const many = (values: number[]) =>
    Array.from({ length: 10 }, (_, i) => metric(values, { id: `m${i}`, name: `m${i}` }));
  const together = check(many(from), many(to));
  expect(together.comparisons[0]!.p_adjusted).toBeCloseTo(10 * singleMetric.comparisons[0]!.p!, 12);
  expect(together.comparisons[0]!.verdict).toBe('inconclusive');
});

test('lists differences of machine and software with both values', () => {
  const fact = (value: string) => [{ label: 'cpu model', part: 'hardware', value }];
  const found = checkBaseline(
    baseline([metric(before)], fact('A')),
    { sessions: [], identity: fact('B'), metrics: [metric(before)] },
    { tolerance: 0.05, withinProcess: false },
  );
  expect(found.differences).toEqual([{ label: 'cpu model', part: 'hardware', baseline: 'A', current: 'B' }]);
});

describe('pooling', () => {
  const what = { point: null, name: 'e2e_ms', unit: 'ms', better: 'lower' as const, source: 'iterations' };
  test('the unit is launches if there are several, repeats if there is one', () => {
    const several = partOfRepeats(what, [
      { launch: 'a', value: 1 },
      { launch: 'a', value: 3 },
      { launch: 'b', value: 6 },
    ]);
    expect(pooled(several)).toMatchObject({ basis: 'launches', values: [2, 6], value: 4 });
    const pooledPart = partOfRepeats(what, [
      { launch: 'a', value: 1 },
      { launch: 'a', value: 3 },
    ]);
    expect(pooled(pooledPart)).toMatchObject({ basis: 'repeats', values: [1, 3], value: 2 });
  });
  test('sessions with one process each become launches together', () => {
    const session = (value: number) =>
      partOfRepeats(what, [
        { launch: 'a', value: value - 1 },
        { launch: 'a', value: value + 1 },
      ]);
    expect(pooled([...session(5), ...session(7)])).toMatchObject({ basis: 'launches', values: [5, 7] });
  });
});
