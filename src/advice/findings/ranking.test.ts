import { expect, test } from 'vitest';
import { rankFindings, type RuleFinding } from './ranking.js';
import type { FoundDraft } from './rule.js';
import type { StageTime } from './stage-times.js';

/** 10 ms per step: 6 idle, 4 of kernels. */
const decode: StageTime = {
  kind: 'decode',
  instances: 100,
  time_ms: 10,
  low_ms: 10,
  launching_ms: 3,
  own_host_ms: null,
  copying_ms: 0,
  launches: 100,
  busy_ms: 10,
  bars: new Map([
    ['inefficiency.gemm', 3],
    ['nonessential.copy', 1],
    ['launch_overhead', 4],
    ['host.program', 2],
    ['roofline', -0.5],
    ['serial', 0.5],
  ]),
};
const prefill: StageTime = {
  kind: 'prefill',
  instances: 1,
  time_ms: 50,
  low_ms: 50,
  launching_ms: 0,
  own_host_ms: null,
  copying_ms: 0,
  launches: 0,
  busy_ms: 50,
  bars: new Map([['inefficiency.gemm', 50]]),
};

const gainOfMs = (ms: number) => ({
  expected_ms: ms,
  low_ms: ms / 2,
  high_ms: 2 * ms,
  after_ms: 0,
  assumption: '',
  what_if: null,
});

function ruleFinding(
  id: string,
  ms: number,
  bars: string[],
  more: Partial<Omit<FoundDraft, 'title'>> = {},
): RuleFinding {
  return {
    rule: { id, references: [] },
    draft: {
      stage: 'decode',
      title: id,
      at_stake_ms: ms,
      cause: '',
      change: { kind: 'code', text: '', example: null },
      gain: gainOfMs(ms),
      confidence: 'high',
      bars,
      evidence: [],
      check: '',
      ...more,
    },
  };
}
const ids = (all: readonly { id: string }[]) => all.map(({ id }) => id);

test('ranks by ms over the whole run, not by share of the stage', () => {
  const all = rankFindings(
    [
      ruleFinding('once', 40, ['inefficiency.gemm'], { stage: 'prefill' }),
      ruleFinding('often', 1, ['nonessential.copy']),
    ],
    [decode, prefill],
  );
  // 100 × 1 ms come before 1 × 40 ms.
  expect(ids(all)).toEqual(['often:decode', 'once:prefill']);
  expect(all.map(({ severity, at_stake_share }) => [severity, at_stake_share])).toEqual([
    ['medium', 0.1],
    ['high', 0.8],
  ]);
});

test('a gain is at most the bars it names, and after_ms excludes profiler overhead', () => {
  const [greedy] = rankFindings([ruleFinding('greedy', 9, ['launch_overhead', 'host.program'])], [decode]);
  expect(greedy!.at_stake_ms).toBe(6);
  expect(greedy!.gain).toMatchObject({ expected_ms: 6, low_ms: 4.5, high_ms: 6, after_ms: 4 });
  // 10 ms without the profiler: its overhead is neither in shares nor in remaining time.
  const profiled = { ...decode, bars: new Map([...decode.bars, ['profiler_overhead', 1.5]]) };
  const [profiledGreedy] = rankFindings(
    [ruleFinding('greedy', 9, ['launch_overhead', 'host.program'])],
    [profiled],
  );
  expect(profiledGreedy!.gain).toMatchObject({ expected_ms: 6, after_ms: 4 });
  // A negative bar does not reduce the others.
  expect(rankFindings([ruleFinding('r', 9, ['roofline', 'serial'])], [decode])[0]!.gain!.expected_ms).toBe(
    0.5,
  );
});

test('bars named by two findings count for the larger one, and the other is hidden unless half of its gain remains', () => {
  const idle = ['launch_overhead', 'host.program'];
  const all = rankFindings([ruleFinding('small', 3, idle), ruleFinding('large', 5, idle)], [decode]);
  expect(all.map(({ rule, hidden_by }) => [rule, hidden_by])).toEqual([
    ['large', null],
    ['small', 'large:decode'],
  ]);
  const some = rankFindings([ruleFinding('small', 2, idle), ruleFinding('large', 5, idle)], [decode]);
  expect(some[1]).toMatchObject({ hidden_by: null, gain: { expected_ms: 1 } });
});

test('a gain in proportion to its bars is not hidden by a larger one: it keeps its share of what remains', () => {
  const bars = ['inefficiency.gemm', 'nonessential.copy'];
  const gains = (change: object) =>
    rankFindings(
      [ruleFinding('types', 4, bars), ruleFinding('padding', 3, bars, change)],
      [{ ...decode, bars: new Map(bars.map((id) => [id, 2.5])) }],
    ).map(({ rule, hidden_by, gain }) => [rule, hidden_by, gain!.expected_ms]);
  expect(gains({})[1]).toEqual(['padding', 'types:decode', 3]);
  // 60 % of 5 ms, then of the 1 ms that is left.
  expect(gains({ proportional: true })).toEqual([
    ['types', null, 4],
    ['padding', null, expect.closeTo(0.6, 9)],
  ]);
});

test('visible gains never sum to more than the stage', () => {
  const bars = [...decode.bars.keys()];
  const all = rankFindings(
    [7, 6, 5, 4, 3, 2, 1].map((ms) => ruleFinding(`f${ms}`, ms, bars)),
    [decode],
  );
  const sum = all
    .filter((finding) => finding.hidden_by === null)
    .reduce((total, { gain }) => total + gain!.expected_ms, 0);
  expect(sum).toBeLessThanOrEqual(10);
  expect(all).toHaveLength(7);
});

test('a finding about the host hides gains that the launches limit, and gains of a covering change count once', () => {
  const findingsWith = (launching_ms: number) =>
    rankFindings(
      [
        ruleFinding('launches', 5, ['launch_overhead', 'host.program'], {
          removes: 'idle',
          covers: ['compile'],
        }),
        ruleFinding('compile', 1, ['host.program'], { removes: 'idle' }),
        ruleFinding('copies', 1, ['nonessential.copy']),
      ],
      [{ ...decode, launching_ms, busy_ms: 4 }],
    ).map(({ rule, hidden_by, gain }) => [rule, hidden_by, gain!.expected_ms]);
  expect(findingsWith(9)).toEqual([
    ['launches', null, 5],
    ['compile', 'launches:decode', 1],
    ['copies', 'launches:decode', 0],
  ]);
  // The host pauses, but does not launch more slowly than the device computes.
  expect(findingsWith(2)[2]).toEqual(['copies', null, 1]);
});

test('a cause hides what it explains, also where that promises a little more', () => {
  const hiders = (ms: number, covers: string[] = []) =>
    Object.fromEntries(
      rankFindings(
        [
          ruleFinding('adapters', ms, [], {
            covers: ['chains'],
            gain: { ...gainOfMs(ms), high_ms: 1.15 * ms },
          }),
          ruleFinding('chains', 1, [], { covers }),
        ],
        [decode],
      ).map(({ rule, hidden_by }) => [rule, hidden_by]),
    );
  expect(hiders(0.95)).toEqual({ adapters: null, chains: 'adapters:decode' });
  expect(hiders(0.8)).not.toMatchObject({ chains: 'adapters:decode' });
  // Where each explains the other, the larger one stays.
  expect(hiders(0.95, ['adapters'])).toEqual({ adapters: 'chains:decode', chains: null });
});

test('findings without a time are informational and last; two findings of one rule in a stage have two ids', () => {
  const all = rankFindings(
    [
      ruleFinding('doubt', 0, [], { stage: null, at_stake_ms: null, gain: null }),
      ruleFinding('twice', 2, ['launch_overhead']),
      ruleFinding('twice', 1, ['host.program']),
    ],
    [decode],
  );
  expect(ids(all)).toEqual(['twice:decode', 'twice:decode:2', 'doubt']);
  expect(all[2]!.severity).toBe('info');
});

test('a gain per token stays per token: no bar limits it, and it hides no change that shortens the step', () => {
  const token = ruleFinding('batch', 8, ['inefficiency.gemm', 'nonessential.copy'], {
    gain: {
      per: 'token',
      expected_ms: 2,
      low_ms: 1.4,
      high_ms: 2.1,
      after_ms: 0.5,
      assumption: '',
      what_if: null,
    },
  });
  const all = rankFindings([token, ruleFinding('casts', 1, ['nonessential.copy'])], [decode]);
  const [batch, casts] = ['batch', 'casts'].map((id) => all.find(({ rule }) => rule === id)!);
  expect(batch!.gain).toMatchObject({ per: 'token', expected_ms: 2, after_ms: 0.5 });
  expect(casts).toMatchObject({ hidden_by: null, gain: { per: 'stage', expected_ms: 1 } });
});

test('a gain per token comes after every finding that shortens the step noticeably', () => {
  const token = ruleFinding('batch', 9, ['inefficiency.gemm'], {
    gain: { per: 'token', expected_ms: 9, low_ms: 8, high_ms: 9, after_ms: 1, assumption: '', what_if: null },
  });
  const all = rankFindings(
    [token, ruleFinding('launches', 4, ['launch_overhead']), ruleFinding('little', 0.2, ['host.program'])],
    [decode],
  );
  expect(ids(all)).toEqual(['launches:decode', 'batch:decode', 'little:decode']);
});

test('a gain per token competes with other findings where requests wait: it shortens the run', () => {
  const token = (queued: boolean) =>
    ruleFinding('batch', 3, ['inefficiency.gemm'], {
      gain: {
        per: 'token',
        expected_ms: 2,
        low_ms: 1,
        high_ms: 2,
        after_ms: 1,
        assumption: '',
        what_if: null,
      },
      queued,
    });
  const order = (queued: boolean) =>
    ids(rankFindings([token(queued), ruleFinding('launches', 2, ['launch_overhead'])], [decode]));
  expect(order(true)).toEqual(['batch:decode', 'launches:decode']);
  expect(order(false)).toEqual(['launches:decode', 'batch:decode']);
});

test('a gain per token comes before a finding of another stage that is a small part of the run', () => {
  const token = ruleFinding('batch', 2, ['inefficiency.gemm'], {
    gain: { per: 'token', expected_ms: 2, low_ms: 1, high_ms: 2, after_ms: 1, assumption: '', what_if: null },
  });
  const prompt = (instances: number) =>
    ids(
      rankFindings(
        [token, ruleFinding('prompt', 40, ['inefficiency.gemm'], { stage: 'prefill' })],
        [decode, { ...prefill, instances }],
      ),
    );
  // 40 of 100 × 10 + 50 ms, then 400 of 1500.
  expect(prompt(1)).toEqual(['batch:decode', 'prompt:prefill']);
  expect(prompt(10)).toEqual(['prompt:prefill', 'batch:decode']);
});

test("severity and order use the lower end of the stage's interval", () => {
  const drafts = [
    ruleFinding('prompt', 40, ['inefficiency.gemm'], { stage: 'prefill' }),
    ruleFinding('step', 4, ['launch_overhead'], { stage: 'decode' }),
  ];
  const steps = { ...decode, instances: 5 };
  expect(ids(rankFindings(drafts, [steps, prefill]))).toEqual(['prompt:prefill', 'step:decode']);
  // Two prefills of 50 ms ± 300.
  const uncertain = rankFindings(drafts, [steps, { ...prefill, instances: 2, low_ms: 0 }]);
  expect(uncertain.map(({ id, severity, confidence }) => [id, severity, confidence])).toEqual([
    ['step:decode', 'high', 'high'],
    ['prompt:prefill', 'low', 'low'],
  ]);
  // The larger one of two that are equally uncertain leads.
  const both = ['first', 'second'].map((id, index) =>
    ruleFinding(id, 10 + 20 * index, ['inefficiency.gemm'], { stage: 'prefill' }),
  );
  expect(ids(rankFindings(both, [{ ...prefill, instances: 2, low_ms: 0 }]))).toEqual([
    'second:prefill',
    'first:prefill',
  ]);
  expect(rankFindings(drafts, [steps, { ...prefill, low_ms: 10 }])[1]).toMatchObject({
    severity: 'medium',
    at_stake_share: 0.8,
  });
});

test('kernels can be removed until the host launches as slowly as the device computes', () => {
  const graphs: StageTime = { ...decode, time_ms: 10, launching_ms: 8, launches: 100, bars: new Map() };
  const gain = { expected_ms: 6, low_ms: 4, high_ms: 6, after_ms: 4, assumption: 'Gone.', what_if: null };
  const gainWith = (more: Partial<FoundDraft>) =>
    rankFindings([ruleFinding('casts', 6, [], { gain, ...more })], [graphs])[0]!.gain!;
  expect(gainWith({}).expected_ms).toBeCloseTo(2);
  expect(gainWith({}).after_ms).toBeCloseTo(8);
  expect(gainWith({}).assumption).toMatch(/The host needs 8.00 ms for the launches that remain/);
  // Half of the launches are removed with the kernels: 4 ms of host time remain.
  expect(gainWith({ launches: 50 }).expected_ms).toBeCloseTo(6);
  expect(gainWith({ removes: 'idle' }).expected_ms).toBeCloseTo(6);
});

test('waiting for the host hides no gain per token, which does not shorten the step', () => {
  const token = ruleFinding('batch', 3, ['inefficiency.gemm'], {
    gain: { per: 'token', expected_ms: 2, low_ms: 1, high_ms: 2, after_ms: 1, assumption: '', what_if: null },
  });
  const launches = ruleFinding('launches', 4, ['launch_overhead'], { removes: 'idle' });
  const all = rankFindings(
    [token, launches, ruleFinding('copies', 1, ['nonessential.copy'])],
    [{ ...decode, launching_ms: 9, busy_ms: 4 }],
  );
  expect(Object.fromEntries(all.map(({ rule, hidden_by }) => [rule, hidden_by]))).toEqual({
    launches: null,
    batch: null,
    copies: 'launches:decode',
  });
});

test('a gain of a what-if that exceeds the bars of its finding is not hidden by itself', () => {
  const gain = {
    expected_ms: 5,
    low_ms: 4,
    high_ms: 6,
    after_ms: 5,
    assumption: '',
    what_if: 'dtype=bfloat16',
  };
  const [types] = rankFindings([ruleFinding('types', 2, ['nonessential.copy'], { gain })], [decode]);
  expect(types).toMatchObject({ hidden_by: null, gain: { expected_ms: 5 } });
});
