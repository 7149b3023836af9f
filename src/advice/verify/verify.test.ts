import { expect, test } from 'vitest';
import type { Finding, StageWaterfall } from '../../model/documents/explain.js';
import { figure } from '../../model/figure.js';
import { withheldReasons } from '../../model/withheld.js';
import { explanationOf, findingOf, stageOf } from './test-verify.js';
import { compareExplanations, verifiedStage } from './verify.js';

const noSession = { before: null, after: null };

test('one change: achieved and expected gain of the stage, computed by hand', () => {
  const launches = findingOf('launch_bound', 6, ['launch_overhead']);
  const before = explanationOf(
    [stageOf({ 'kernels.gemm': 2, launch_overhead: 8 })],
    [launches, findingOf('casts', 0.4, ['kernels.gemm'])],
  );
  const after = explanationOf(
    [stageOf({ 'kernels.gemm': 2, launch_overhead: 3 })],
    [findingOf('casts', 0.4, ['kernels.gemm']), findingOf('tiles', 0.5, [])],
  );
  const result = compareExplanations(before, after, noSession);
  expect(result.stages[0]).toMatchObject({
    graded_on: 'wall',
    achieved_ms: 5,
    before_ms: { value: 10 },
    after_ms: { value: 5 },
  });
  // 6 expected, 5 achieved: a fifth too high, and within 4.8 to 6.6.
  expect(result.changes[0]).toMatchObject({
    finding: 'launch_bound:decode',
    outcome: 'gone',
    achieved_ms: 5,
    as_expected: true,
  });
  expect(result.changes[0]!.error).toBeCloseTo(0.2, 12);
  expect(result.changes.map(({ finding, outcome }) => [finding, outcome])).toEqual([
    ['launch_bound:decode', 'gone'],
    ['casts:decode', 'still_there'],
    ['tiles:decode', 'new'],
  ]);
  expect(result.score).toMatchObject({ graded: 1, as_expected: 1 });
  expect(result.score.median_absolute_error).toBeCloseTo(0.2, 12);
  expect(result.sentences[0]).toBe('Decode step: 10.0 ms before, 5.00 ms after (−50 %), under the profiler.');
  expect(result.stages[0]!.bars).toContainEqual({ id: 'launch_overhead', before_ms: 8, after_ms: 3 });
});

test('an error of ten times and more is a factor, as in the table; a request says where its time starts', () => {
  const request = (ms: number) => ({
    ...stageOf({ 'kernels.gemm': 2, launch_overhead: ms }, 0.001),
    from_schedule: true as const,
  });
  const result = compareExplanations(
    explanationOf([request(8)], [findingOf('launch_bound', 6, ['launch_overhead'])]),
    explanationOf([request(7.6)], []),
    noSession,
  );
  expect(result.sentences.slice(0, 2)).toEqual([
    'Decode step from schedule: 10.0 ms before, 9.60 ms after (−4.0 %), under the profiler.',
    'The achieved gain is below the expected interval; the expected gain is off by a factor of 15.0.',
  ]);
});

test('a gain outside the expected interval by less than its error is said to be so', () => {
  const before = explanationOf(
    [stageOf({ 'kernels.gemm': 2, launch_overhead: 8 }, 0.09)],
    [findingOf('launch_bound', 4, ['launch_overhead'])],
  );
  const after = explanationOf([stageOf({ 'kernels.gemm': 2, launch_overhead: 3 }, 0.09)], []);
  // 5 ± 1 achieved, 3.2 to 4.4 expected.
  expect(compareExplanations(before, after, noSession).sentences[1]).toBe(
    'The achieved gain is within its own error of the expected interval; the expected gain is off by 20 %.',
  );
});

test('the point of a stage is named as in titles', () => {
  const at = { ...stageOf({ 'kernels.gemm': 2 }), point: 'b8-p128-o32' };
  const [sentence] = compareExplanations(
    explanationOf([at], []),
    explanationOf([at], []),
    noSession,
  ).sentences;
  expect(sentence).toContain('Decode step at batch 8, 128 in + 32 out: ');
});

test('two changes share the gain in proportion to their expected gains, including gains hidden by the larger one', () => {
  const findings = [
    findingOf('casts', 3, ['nonessential.copy']),
    findingOf('chains', 1, ['inefficiency.elementwise']),
    findingOf('rotary', 1, ['nonessential.copy'], { hidden_by: 'casts:decode' }),
  ];
  const before = explanationOf(
    [stageOf({ 'nonessential.copy': 5, 'inefficiency.elementwise': 5 })],
    findings,
  );
  const after = explanationOf([stageOf({ 'nonessential.copy': 3, 'inefficiency.elementwise': 3 })], []);
  const result = compareExplanations(before, after, noSession);
  expect(result.changes.map(({ achieved_ms: ms }) => ms)).toEqual([3, 1, null]);
  expect(result.changes[2]!.text).toContain('hidden by finding 1');
});

test('a change below a thousandth has no digits', () => {
  const stages = (ms: number) => explanationOf([stageOf({ 'nonessential.copy': ms })], []);
  const [sentence] = compareExplanations(stages(23), stages(23.017), noSession).sentences;
  expect(sentence!.replaceAll('\u00a0', ' ')).toBe(
    'Decode step: 23.0 ms before, 23.0 ms after (<0.1 %), under the profiler.',
  );
});

test('no gain is measured next to a larger finding without an expected gain that is gone, too', () => {
  const copies = findingOf('exposed_communication', 4, ['exposed_comm.wire'], { gain: null });
  const before = explanationOf(
    [stageOf({ 'nonessential.copy': 5, 'exposed_comm.wire': 5 })],
    [copies, findingOf('casts', 2, ['nonessential.copy'])],
  );
  const after = explanationOf([stageOf({ 'nonessential.copy': 3, 'exposed_comm.wire': 1 })], []);
  const { changes } = compareExplanations(before, after, noSession);
  expect(changes.map(({ achieved_ms: ms }) => ms)).toEqual([null, null]);
  expect(changes[1]!.text).toContain('another finding with a larger effect and no expected gain');
});

test('a finding hidden by a larger one in other bars is graded once both are gone', () => {
  const findings = [
    findingOf('host_bound', 6, ['host.program']),
    findingOf('kv_cache_concat', 2, ['nonessential.copy'], { hidden_by: 'host_bound:decode' }),
  ];
  const before = explanationOf([stageOf({ 'nonessential.copy': 3, 'host.program': 7 })], findings);
  const bothGone = compareExplanations(
    before,
    explanationOf([stageOf({ 'nonessential.copy': 1, 'host.program': 1 })], []),
    noSession,
  );
  expect(bothGone.changes.map(({ achieved_ms: ms }) => ms)).toEqual([6, 2]);
  // Alone it cannot be graded: the host takes as long as before.
  const hidden = compareExplanations(
    before,
    explanationOf([stageOf({ 'nonessential.copy': 1, 'host.program': 8 })], findings.slice(0, 1)),
    noSession,
  );
  expect(hidden.changes.map(({ outcome, achieved_ms: ms }) => [outcome, ms])).toEqual([
    ['still_there', null],
    ['gone', null],
  ]);
  expect(hidden.changes[1]!.text).toBe('Gone; the gain is still hidden by finding 1.');
});

test('a slower stage is reported by its whole time, not by the part of one of several findings', () => {
  const before = explanationOf(
    [stageOf({ 'nonessential.copy': 5, launch_overhead: 5 })],
    [findingOf('casts', 3, ['nonessential.copy']), findingOf('launch_bound', 1, ['launch_overhead'])],
  );
  const after = explanationOf([stageOf({ 'nonessential.copy': 6, launch_overhead: 6 })], []);
  const { changes } = compareExplanations(before, after, noSession);
  expect(changes.map(({ achieved_ms: ms }) => ms)).toEqual([-1.5, -0.5]);
  for (const { text } of changes) expect(text).toContain('the stage got no faster (2.00 ms slower)');
});

test('a finding of a stage that the later session lacks is not judged', () => {
  const before = explanationOf(
    [stageOf({ launch_overhead: 10 })],
    [findingOf('launch_bound', 6, ['launch_overhead'])],
  );
  const [change] = compareExplanations(before, explanationOf([], []), noSession).changes;
  expect(change).toMatchObject({ outcome: 'not_judged', achieved_ms: null });
  expect(change!.text).toBe('Not judged: the later session has no such stage.');
  // Without a profiler a stage has a time, but no launches.
  const bare = { ...stageOf({ unattributed: 4 }), source: 'record' as const };
  const [unknown] = compareExplanations(before, explanationOf([bare], []), noSession).changes;
  expect(unknown).toMatchObject({ outcome: 'not_judged', achieved_ms: null });
  expect(unknown!.text).toMatch(/^Not judged: the later session ran without a profiler/);
});

test('distinguishes smaller and slower from gone', () => {
  const before = explanationOf(
    [stageOf({ launch_overhead: 10 })],
    [findingOf('launch_bound', 6, ['launch_overhead'])],
  );
  const smaller = explanationOf(
    [stageOf({ launch_overhead: 7 })],
    [findingOf('launch_bound', 3, ['launch_overhead'])],
  );
  expect(compareExplanations(before, smaller, noSession).changes[0]).toMatchObject({
    outcome: 'smaller',
    achieved_ms: 3,
    as_expected: false,
  });
  const slower = compareExplanations(before, explanationOf([stageOf({ launch_overhead: 11 })], []), noSession)
    .changes[0]!;
  expect(slower).toMatchObject({ outcome: 'gone', achieved_ms: -1, error: null, as_expected: false });
  expect(slower.text).toContain('the stage got no faster (1.00 ms slower)');
});

test('with an unsteady wall time kernels are compared, and idle time only if the difference exceeds the noise', () => {
  const copies = explanationOf(
    [stageOf({ 'nonessential.copy': 4, launch_overhead: 6 }, 0.3)],
    [findingOf('casts', 2, ['nonessential.copy'])],
  );
  const without = explanationOf([stageOf({ 'nonessential.copy': 2, launch_overhead: 7 }, 0.05)], []);
  const result = compareExplanations(copies, without, noSession);
  expect(result.stages[0]).toMatchObject({ graded_on: 'gpu', achieved_ms: 2, before_ms: { value: 4 } });
  expect(result.changes[0]).toMatchObject({ achieved_ms: 2, error: 0 });

  const launches = (idle: number, findings: Finding[]) =>
    explanationOf([stageOf({ 'kernels.gemm': 2, launch_overhead: idle }, 0.15)], findings);
  const bound = [findingOf('launch_bound', 6, ['launch_overhead'])];
  // 10 ± 1.5 and 4 ± 0.6 ms: 6 is far above 2 × 1.6.
  expect(compareExplanations(launches(8, bound), launches(2, []), noSession).changes[0]).toMatchObject({
    achieved_ms: 6,
    error: 0,
  });
  // 10 ± 1.5 and 8 ± 1.2 ms: 2 is within the noise.
  const noise = compareExplanations(launches(8, bound), launches(6, []), noSession).changes[0]!;
  expect(noise).toMatchObject({ achieved_ms: null, as_expected: null });
  expect(noise.text).toContain('too uncertain to measure the gain');
  // Kernels show the gain of the casts only: launches have no share of it.
  const both = [...bound, findingOf('casts', 2, ['kernels.gemm'])];
  const unsteady = (kernelMs: number, findings: Finding[]) =>
    explanationOf([stageOf({ 'kernels.gemm': kernelMs, launch_overhead: 8 }, 0.5)], findings);
  const graded = compareExplanations(unsteady(4, both), unsteady(2, []), noSession);
  expect(graded.stages[0]).toMatchObject({ graded_on: 'gpu', achieved_ms: 2 });
  expect(graded.changes).toMatchObject([
    { finding: 'launch_bound:decode', achieved_ms: null },
    { finding: 'casts:decode', achieved_ms: 2, error: 0, as_expected: true },
  ]);
  // Nor do kernels show the gain of waits, of which copies are a small part.
  const waits = [findingOf('synchronization', 6, ['launch_overhead', 'exposed_copy.dtoh_pinned'])];
  const waiting = (copyMs: number, idle: number, findings: Finding[]) =>
    explanationOf([stageOf({ 'exposed_copy.dtoh_pinned': copyMs, launch_overhead: idle }, 0.5)], findings);
  expect(compareExplanations(waiting(1, 8, waits), waiting(2, 6, []), noSession).changes).toMatchObject([
    { achieved_ms: null },
  ]);
});

test('grades a difference far above the noise on time, and a CPU never on GPU time', () => {
  // vLLM eager against graphs on an H200: 12.8 ms ± 19 %, 2.17 ms after; kernels take 2.1 ms in both.
  const eager = explanationOf(
    [stageOf({ 'kernels.gemm': 2.12, launch_overhead: 10.68 }, 0.19)],
    [findingOf('launch_bound', 10.6, ['launch_overhead'])],
  );
  const graphs = explanationOf([stageOf({ 'kernels.gemm': 2.1, launch_latency: 0.07 }, 0.01)], []);
  const result = compareExplanations(eager, graphs, noSession);
  expect(result.stages[0]).toMatchObject({ graded_on: 'wall', before_ms: { value: 12.8 } });
  expect(result.stages[0]!.achieved_ms).toBeCloseTo(12.8 - 2.17, 9);
  expect(result.changes[0]).toMatchObject({ as_expected: true });

  const onCpu = (ms: number) => ({
    ...stageOf({ roofline: ms, host: 0.1 }, 0.3),
    source: 'profile' as const,
  });
  const noisy = compareExplanations(
    explanationOf([onCpu(14.8)], []),
    explanationOf([onCpu(12)], []),
    noSession,
  ).stages[0]!;
  expect(noisy.graded_on).toBe('wall');
  expect(noisy.achieved_ms).toBeLessThan(14.9);
});

test('steps of other numbers of sequences are compared for the same number, which the steps recorded', () => {
  const before = explanationOf([stageOf({ roofline: 1 })], [findingOf('small_batch', 0.8, ['roofline'])]);
  const after = explanationOf([stageOf({ roofline: 4 })], []);
  const result = compareExplanations(before, after, { before: 1, after: 16 });
  expect(result.stages[0]).toMatchObject({ after_ms: { value: 0.25 }, achieved_ms: 0.75 });
  expect(result.sentences[0]).toContain('Decode step, per sequence: ');
  // A point of a benchmark has its own batch size.
  const [one, other] = [1, 4].map((ms) =>
    explanationOf([{ ...stageOf({ roofline: ms }), kind: 'request', point: 'b1-p16-o4' }], []),
  );
  expect(compareExplanations(one!, other!, { before: 4, after: 1 }).stages[0]).toMatchObject({
    sequences: null,
    after_ms: { value: 4 },
  });
  // The steps of a server grow, whatever its configuration says.
  const grown = explanationOf([{ ...stageOf({ roofline: 4 }), sequences: 61 }], []);
  const few = explanationOf([{ ...stageOf({ roofline: 1 }), sequences: 4 }], []);
  expect(compareExplanations(few, grown, { before: 8, after: 8 }).stages[0]).toMatchObject({
    sequences: { unit: 'sequence', before: 4, after: 61 },
    after_ms: { value: (4 * 4) / 61 },
    bars: [{ id: 'roofline', before_ms: 1, after_ms: (4 * 4) / 61 }],
  });
  // 4 prompts of 128 tokens in a step, or 32 prompts of 256: the second computes 16 times the work, not 8 times.
  const prompts = (ms: number, sequences: number, new_tokens: number) =>
    explanationOf([{ ...stageOf({ roofline: ms }), kind: 'prefill', sequences, new_tokens }], []);
  const prefill = compareExplanations(prompts(8, 4, 512), prompts(36, 32, 8192), noSession);
  expect(prefill.stages[0]).toMatchObject({ after_ms: { value: 36 / 16 } });
  expect(prefill.sentences[0]).toMatch(/^Prefill, per 512 tokens: 8\.00.ms before, 2\.25.ms after/);
});

test('of one stage, sentences and score are of its changes only', () => {
  const stages = [stageOf({ roofline: 4 }), { ...stageOf({ roofline: 9 }), kind: 'prefill' as const }];
  const findings = [
    findingOf('one', 1, ['roofline']),
    { ...findingOf('two', 1, ['roofline']), stage: 'prefill' as const },
  ];
  const both = compareExplanations(explanationOf(stages, findings), explanationOf(stages, []), noSession);
  const { score, sentences } = verifiedStage(both, 'prefill');
  expect([both.score.graded, score.graded]).toEqual([2, 1]);
  expect(both.sentences.join(' ')).toContain('Decode step');
  expect(sentences.join(' ')).not.toContain('Decode step');
});

test('a gain per token is graded by the tokens of a step, whatever share of the stage the rule named', () => {
  // 4 ms for two sequences, 2 ms per token; at batch 8 half a millisecond per token is expected.
  const gain = { per: 'token' as const, expected_ms: 1.5, low_ms: 1.2, high_ms: 1.6, after_ms: 0.5 };
  const finding = findingOf('small_batch', 2.5, ['roofline'], {
    gain: { ...gain, assumption: '', what_if: 'batch-size=8' },
  });
  const before = explanationOf([stageOf({ roofline: 4 })], [finding]);
  const after = explanationOf([stageOf({ roofline: 4.8 })], []);
  const result = compareExplanations(before, after, { before: 2, after: 8 });
  // Two tokens: 4 ms, then 2 × 4.8 / 8.
  expect(result.changes[0]).toMatchObject({ expected_ms: 3, low_ms: 2.4, high_ms: 3.2, as_expected: true });
  expect(result.changes[0]!.achieved_ms).toBeCloseTo(2.8, 9);
});

test('gains are not graded on a difference that a profiler is part of', () => {
  const findings = [findingOf('host_bound', 5, ['host.program'])];
  const stage = stageOf({ 'host.program': 6, roofline: 4 });
  const faster = stageOf({ 'host.program': 1, roofline: 4 });
  const clean_ms = figure(8, 'ms', 'clean', { n: 4, ci95: [7.9, 8.1] });
  const verdicts = ([first, second]: StageWaterfall[]) => {
    const { stages, changes, score, sentences } = compareExplanations(
      explanationOf([first!], findings),
      explanationOf([second!], []),
      noSession,
    );
    return [stages[0]!.profiled, score.graded, changes[0]!.text, sentences[0]];
  };
  expect(verdicts([stage, { ...faster, source: 'bench' }])).toEqual([
    'before',
    0,
    'Gone; not graded, because only the time before the change is under a profiler, and what it adds is part of the difference.',
    'Decode step: 10.0 ms before, 5.00 ms after (−50 %), only before the change under a profiler.',
  ]);
  expect(verdicts([{ ...stage, clean_ms }, faster])).toEqual([
    'both',
    0,
    'Gone; not graded, because the gain is expected without a profiler, and the later session has times only under one.',
    'Decode step: 10.0 ms before, 5.00 ms after (−50 %), under the profiler.',
  ]);
  // Without a clean time the gain is expected under the profiler, as both times are.
  expect(verdicts([stage, { ...faster, clean_ms }]).slice(0, 2)).toEqual(['both', 1]);
});

test('a finding about loads is not judged by a session without one of them', () => {
  const load = (point: string): StageWaterfall => ({
    ...stageOf({ unattributed: 5 }),
    kind: 'request',
    source: 'serving',
    point,
  });
  const queue = [findingOf('requests_queue', 5, [], { id: 'requests_queue', stage: null, gain: null })];
  const [one, four] = [load('1 req/s'), load('4 req/s')];
  const outcomes = (after: StageWaterfall[]) =>
    compareExplanations(explanationOf([one, four], queue), explanationOf(after, []), noSession).changes.map(
      ({ outcome, text }) => [outcome, text],
    );
  expect(outcomes([one])).toEqual([['not_judged', 'Not judged: the later session has no load at 4 req/s.']]);
  expect(outcomes([one, four])).toMatchObject([['gone', 'Gone; no gain was expected.']]);
});

test('a finding withheld in the later session is not judged as gone', () => {
  const before = explanationOf(
    [stageOf({ 'host.program': 5, roofline: 5 })],
    [findingOf('host_bound', 5, ['host.program'])],
  );
  const reason = withheldReasons.passes_differ;
  const after = explanationOf(
    [stageOf({ 'host.program': 4, roofline: 5 })],
    [],
    [{ rule: 'host_bound', stage: 'decode', title: '', reason }],
  );
  const { changes, score, sentences } = compareExplanations(before, after, noSession);
  expect(sentences.at(-1)).toContain('cannot show whether findings of the earlier one are gone');
  expect(changes).toMatchObject([{ outcome: 'not_judged', achieved_ms: null }]);
  expect(changes[0]!.text).toContain('the profiled and the clean pass differ too much');
  expect(score.graded).toBe(0);
});
