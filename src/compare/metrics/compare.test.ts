import { describe, expect, test } from 'vitest';
import type { SampledMetric } from '../../model/documents/baseline.js';
import { benchCompareSchema } from '../../model/documents/bench-compare.js';
import { compareSides, type Gate, type SideData } from './compare.js';
import { metric } from './test-metric.js';

const side = (selector: string, metrics: SampledMetric[], args: SideData['identity'] = []): SideData => ({
  side: { selector, baseline: null, variant: null, sessions: [] },
  identity: args,
  metrics,
});
function compare(from: SampledMetric[], to: SampledMetric[], gates: Gate[] = [], withinProcess = false) {
  const found = compareSides(side('a', from), side('b', to), { gates, withinProcess });
  return benchCompareSchema.parse(found);
}

const before = [10.1, 10.3, 9.9, 10.2];
const after = [11.0, 10.6, 11.3, 10.9, 11.1];
const tpot = (share: number): Gate[] => [{ metric: 'tpot', share }];

describe('rank tests decide with enough values', () => {
  test('4 against 5 launches without overlap: worse by 8.4 %, p = 2/126 (constants of rank-test.test.ts)', () => {
    const found = compare([metric(before)], [metric(after)], tpot(0.05));
    expect(found.result).toBe('failed');
    const [first] = found.comparisons;
    expect(first).toMatchObject({ method: 'mann_whitney', verdict: 'worse', n: [4, 5], superiority: 1 });
    expect(first!.p).toBeCloseTo(2 / 126, 14);
    expect(first!.p_welch).toBeCloseTo(0.0005695355017232194, 10);
    expect(first!.p_permutation).toBeCloseTo(1 / 126, 12);
    expect(first!.change).toBeCloseTo(0.0837122076904286, 12);
    expect(first!.text).toBe('worse: +8.4 % (+3.9 % to +12 %)');
    expect(found.power).toEqual([]);
    expect(found.headline).toBe('FAILED (tpot worse by more than 5 %: yes). Worse: TPOT (+8.4 %).');
  });
  test('a real change smaller than the gate', () => {
    expect(compare([metric(before)], [metric(after)], tpot(0.1)).gates).toEqual([
      { metric: 'tpot', share: 0.1, result: 'passed', by: ['tpot_ms'] },
    ]);
  });
  test('a better metric passes; a rate is worse if it falls', () => {
    expect(compare([metric(after)], [metric(before)], tpot(0)).result).toBe('passed');
    const rate = { better: 'higher' as const };
    expect(compare([metric(after, rate)], [metric(before, rate)], tpot(0.05)).result).toBe('failed');
  });
  test('without a gate nothing fails, and the text says so', () => {
    const found = compare([metric(before)], [metric(after)]);
    expect(found.result).toBe('no_gate');
    expect(found.headline).toBe('Worse: TPOT (+8.4 %).');
  });
});

test('a change that is not significant states the excluded range: a gate outside it passes, inside it is undecided', () => {
  const from = [10, 10.02, 9.98, 10.01, 9.99];
  const to = [10.01, 9.99, 10.02, 10, 9.98];
  const found = compare([metric(from)], [metric(to)], tpot(0.01));
  expect(found).toMatchObject({ result: 'passed', comparisons: [{ verdict: 'no_real_difference' }] });
  expect(found.headline).toContain('No change is significant.');
  const wide = compare(
    [metric([10.1, 10.9, 9.9, 10.6])],
    [metric([11.0, 10.2, 11.3, 10.4, 11.1])],
    tpot(0.05),
  );
  expect(wide.result).toBe('undecided');
  expect(wide.gates[0]!.by).toEqual(['tpot_ms']);
  expect(wide.comparisons[0]!.text).toBe('not significant; more than 12 % is ruled out');
});

describe('too few launches for rank tests', () => {
  test('3 against 3: says how many launches would suffice, and decides by Welch', () => {
    const found = compare([metric([10, 10.1, 9.9])], [metric([12, 12.1, 11.9])], tpot(0.05));
    expect(found.comparisons[0]).toMatchObject({ method: 'welch', verdict: 'worse', p_mann_whitney: 0.1 });
    expect(found.power).toHaveLength(1);
    expect(found.power[0]).toContain('With 3 against 3 values a rank test cannot reach p < 0.05');
    expect(found.power[0]).toContain('(1 metric: smallest possible p 0.10)');
    expect(found.power[0]).toContain('With --launches 4, ranks decide.');
    expect(found.result).toBe('failed');
    // Requests of a load test are no launches.
    const [from, to] = [
      [10, 10.1, 9.9],
      [12, 12.1, 11.9],
    ].map((list) => metric(list, { basis: 'repeats' }));
    expect(compare([from!], [to!], [], true).power[0]).toContain('With 4 values per side, ranks decide.');
  });
  test('4 against 4 suffices for one metric, not for three; gated metrics are corrected among themselves', () => {
    const named = (name: string, values: number[]) => metric(values, { id: name, name });
    const four = ['ttft_ms', 'tpot_ms', 'e2e_ms', 'itl_ms'];
    const low = four.map((name) => named(name, [10, 10.1, 9.9, 10.2]));
    const high = four.map((name) => named(name, [12, 12.1, 11.9, 12.2]));
    // 2/70 alone; 4 × 2/70 = 0.11 together; 3 × 2/70 = 0.086.
    const all = compare(low, high);
    expect(all.comparisons.every(({ method }) => method === 'welch')).toBe(true);
    expect(all.power[0]).toContain('(4 metrics corrected together: smallest possible p 0.11)');
    // Two gated metrics and two others need the same: it is said once.
    const few = [low, high].map((side) =>
      side.map((one) => ({ ...one, values: one.values.slice(0, 3) })),
    ) as [typeof low, typeof high];
    const [power] = compare(...few, [...tpot(0.05), { metric: 'e2e', share: 0.05 }]).power;
    expect(power!.match(/2 metrics corrected together/g)).toHaveLength(1);
    const gated = compare(low, high, tpot(0.05));
    const by = Object.fromEntries(gated.comparisons.map((comparison) => [comparison.id, comparison]));
    expect(by['tpot_ms']).toMatchObject({ method: 'mann_whitney', family: 'gate' });
    expect(by['tpot_ms']!.p_adjusted).toBeCloseTo(2 / 70, 14);
    expect(by['ttft_ms']).toMatchObject({ method: 'welch', family: 'other' });
    expect(by['ttft_ms']!.p_adjusted).toBeCloseTo(3 * by['ttft_ms']!.p!, 14);
  });
});

describe('metrics without a verdict', () => {
  const within = { basis: 'repeats' as const };
  test('repeats of one process, unless requested', () => {
    const found = compare([metric(before, within)], [metric(after, within)], tpot(0.05));
    expect(found).toMatchObject({
      result: 'undecided',
      comparisons: [{ verdict: 'within_process', p: null }],
    });
    expect(found.headline).toContain('Nothing is claimed');
    const withinProcess = compare([metric(before, within)], [metric(after, within)], tpot(0.05), true);
    expect(withinProcess).toMatchObject({ result: 'failed', comparisons: [{ basis: 'repeats' }] });
  });
  test('one value per side, or a metric of only one side', () => {
    expect(compare([metric(before)], [metric([20])]).comparisons[0]).toMatchObject({ verdict: 'no_spread' });
    const ttft = metric(before, { id: 'ttft_ms', name: 'ttft_ms' });
    expect(compare([metric(before), ttft], [metric(before)]).comparisons[1]).toMatchObject({
      verdict: 'missing',
      text: 'only the first side has it',
    });
  });
  test('a value of 0 has no ratio, whatever the number of launches', () => {
    const { comparisons } = compare([metric(before)], [metric([...before.slice(1), 0])]);
    expect(comparisons[0]).toMatchObject({ verdict: 'no_spread', n: [4, 4] });
    expect(comparisons[0]!.text).toContain('with a value of 0');
  });
  test('no common metric, and a gate that names none of the metrics', () => {
    const ttft = metric(before, { id: 'ttft_ms', name: 'ttft_ms' });
    expect(() => compare([metric(before)], [ttft])).toThrow('a and b have no metric in common');
    const atBatches = [1, 8].map((batch) =>
      metric(before, { id: `${batch}`, point: `b${batch}-p16-o8`, name: 'tpot_ms' }),
    );
    expect(() => compare(atBatches, [ttft])).toThrow(
      expect.objectContaining({
        parts: expect.objectContaining({
          why: 'The first has TPOT. The second has TTFT.',
          fix: expect.stringContaining('with a metric in common') as string,
        }),
      }),
    );
    // Two names of one metric have one label.
    const server = metric(before, { id: 'a', name: 'ttft_ms', point: '8 users' });
    const file = metric(before, { id: 'b', name: 'ttft', point: 'synchronous' });
    expect(() => compare([server], [file])).toThrow('a and b have no load or batch in common');
    // At one load, two names are of two metrics.
    const batch = metric(before, { id: 'c', name: 'ttft_ms', point: null });
    expect(() => compare([batch], [{ ...file, point: null }])).toThrow(
      expect.objectContaining({
        parts: expect.objectContaining({
          what: 'a and b have no metric in common',
          why: 'The first has ttft_ms. The second has ttft.',
        }),
      }),
    );
    const atUsers = (users: string) => [metric(before, { id: users, point: users })];
    expect(() => compare([...atBatches, ...atUsers('8 users')], atUsers('16 users'))).toThrow(
      expect.objectContaining({
        parts: expect.objectContaining({
          what: 'a and b have no load or batch in common',
          why: 'The first has batch 1, 16 in + 8 out; batch 8, 16 in + 8 out; 8 users. The second has 16 users.',
        }),
      }),
    );
    expect(() => compare([...atUsers('8 users'), ...atUsers('2 users')], atUsers('16 users'))).toThrow(
      expect.objectContaining({
        parts: expect.objectContaining({ why: 'The first has 2 users; 8 users. The second has 16 users.' }),
      }),
    );
    expect(() => compare([metric(before)], [metric(after)], [{ metric: 'topt', share: 0 }])).toThrow(
      expect.objectContaining({
        code: 'E_USAGE',
        parts: expect.objectContaining({ why: 'They have tpot.' }),
      }),
    );
  });
});

test('reports engine arguments that differ', () => {
  const args = (value: string) => [{ label: 'engine argument mode', part: 'engine', value }];
  const found = compareSides(
    side('a', [metric(before)], args('eager')),
    side('b', [metric(after)], args('cudagraph')),
    { gates: [], withinProcess: false },
  );
  expect(found.differences).toEqual([
    { label: 'engine argument mode', part: 'engine', baseline: 'eager', current: 'cudagraph' },
  ]);
});

test('reports what launches do not cover once for both sides', () => {
  const server = { ...side('a', [metric(before)]), caveats: ['rounds of one server'] };
  const options = { gates: [], withinProcess: false };
  const singleSide = compareSides(server, side('b', [metric(after)]), options);
  expect(singleSide.power).toEqual(['a: rounds of one server']);
  const bothSides = compareSides(server, { ...server, side: { ...server.side, selector: 'b' } }, options);
  expect(bothSides.power).toEqual(['a and b: rounds of one server']);
});

test("Welch's result needs the permutation test to agree, as for a baseline", () => {
  const [from, to] = [
    [10, 10.1, 10.2, 11],
    [10.9, 12, 12, 12],
  ];
  const two = (values: number[]) => ['tpot_ms', 'e2e_ms'].map((name) => metric(values, { id: name, name }));
  const [first] = compare(two(from), two(to)).comparisons;
  expect(first).toMatchObject({ method: 'welch', verdict: 'no_real_difference' });
  expect(first!.p_adjusted).toBeLessThan(0.05);
  expect(first!.p_permutation).toBeGreaterThan(0.05);
});
