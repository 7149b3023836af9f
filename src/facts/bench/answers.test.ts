import { expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import type { BenchAnswer, BenchVariant } from '../../model/documents/bench.js';
import { expectClose } from '../test-rows.js';
import { benchAnswers } from './answers.js';
import { benchFits } from './fits.js';
import { variantFlags } from './flags.js';
import { gpuWorkload, planOf, pointOf } from './test-bench.js';
import { variantAnswers } from './variants.js';
import { formatPercent } from '../../vocabulary/format.js';

type Points = ReturnType<typeof pointOf>[];
const answersOf = (points: Points) => benchAnswers(points, benchFits(points));
const answer = (points: Points, id: BenchAnswer['id']) =>
  answersOf(points).find((candidate) => candidate.id === id)!;
const flagsOf = (points: Points) =>
  variantFlags(points, {
    workload: gpuWorkload(),
    command: [],
    hardware: {},
    usedBefore: [],
    plan: planOf([]),
  }).map(({ text }) => text);

/** One token of 10 ms first, then TPOT by batch; 11 output tokens, so e2e = TTFT + 10 TPOT. */
const sweep = (tpots: [batch: number, tpot: number][]): Points =>
  tpots.map(([batch, tpot]) => pointOf(['throughput'], [batch, 8, 11], [[10, tpot]]));

test('the knee is where doubling the batch gives less than 1.5 times the decode tokens/s', () => {
  // 100, 200, 333 and 333 tok/s: gains of 2, 1.67 and 1.
  const points = sweep([
    [1, 10],
    [2, 10],
    [4, 12],
    [8, 24],
  ]);
  const knee = answer(points, 'batch_knee');
  expect(knee.answer).toContain('not pay off beyond batch 4: from 4 to 8 each doubling gives 1.00×');
  expectClose(knee.figures['knee_batch'], 4);
  expectClose(knee.figures['gain_2_4'], 4 / 12 / (2 / 10));
  // Output tokens/s: batch · 11 / (10 + 10 TPOT): 100, 200, 338, 352.
  const scaling = answer(points, 'scaling');
  expectClose(scaling.figures['scaling_factor_4'], (4 * 110) / 130);
  expectClose(scaling.figures['scaling_efficiency_8'], 110 / 250);
  expect(flagsOf(points)).toEqual([
    expect.stringContaining('batch 8 gives hardly more tokens/s than batch 4: 338 tok/s → 352 tok/s'),
  ]);
});

test('quadrupling counts as two doublings; without a knee the largest batch is named', () => {
  const points = sweep([
    [1, 10],
    [4, 16],
    [16, 30],
  ]);
  const knee = answer(points, 'batch_knee');
  // 100 → 250: √2.5 = 1.58 per doubling; 250 → 533: √2.13 = 1.46.
  expectClose(knee.figures['gain_1_4'], Math.sqrt(2.5));
  expectClose(knee.figures['knee_batch'], 4);
  const withoutKnee = answer(
    sweep([
      [1, 10],
      [4, 11],
      [16, 12],
    ]),
    'batch_knee',
  );
  expect(withoutKnee.answer).toContain('No knee up to batch 16');
  expect(withoutKnee.figures).not.toHaveProperty('knee_batch');
});

test('the sequences cost as much as the fixed part at batch 20 if TPOT is 10 + 0.5 b', () => {
  const points = sweep([1, 4, 8].map((batch) => [batch, 10 + 0.5 * batch]));
  const knee = answer(points, 'batch_knee');
  expectClose(knee.figures['crossover_batch'], 20);
  expect(knee.answer).toContain('at batch 20, far beyond the measured range');
  expect(flagsOf(points)).toEqual([]);
});

test('reports the cost of doubling the prompt and the output, measured and by the fit', () => {
  const prompts = [10, 50, 200, 1000].map((n) => pointOf(['sequence'], [1, n, 50], [[4 + 0.1 * n, 5]]));
  const outputs = [100, 200].map((n) => pointOf(['sequence'], [1, 200, n], [[24, 5]]));
  const points = [...prompts, ...outputs];
  const prompt = answer(points, 'prompt_cost');
  // 24 → 104 ms over log2(5) doublings; the fit's 54 → 104 ms.
  expectClose(prompt.figures['doubling_200_1000'], (104 / 24) ** (1 / Math.log2(5)));
  expectClose(prompt.figures['doubling_by_fit'], 104 / 54);
  expectClose(prompt.figures['fixed_ms'], 4);
  expectClose(prompt.figures['per_token_ms'], 0.1);
  expect(prompt.answer).toContain('100 more prompt tokens cost 10.0 ms');
  const output = answer(points, 'output_cost');
  // 24 + 99 · 5 = 519 and 24 + 199 · 5 = 1019 ms.
  expectClose(output.figures['doubling_100_200'], 1019 / 519);
  expect(output.answer).toContain('100 → 200: 519 ms → 1.02 s');
});

test('a size without measurable cost is reported as such, never with a negative slope', () => {
  // The H200 with CUDA graphs: 12.2, 12.2, 12.1, 11.9 ms from 10 to 1000 prompt tokens.
  const prompts = (noise: number) =>
    [12.2, 12.2, 12.1, 11.9].map((ttft, i) =>
      pointOf(
        ['sequence'],
        [1, [10, 50, 200, 1000][i]!, 50],
        [
          [ttft * (1 - noise), 3],
          [ttft * (1 + noise), 3],
        ],
      ),
    );
  expect(answer(prompts(0.03), 'prompt_cost').answer).toContain(
    'TTFT does not measurably depend on the prompt tokens, from 10 to 1\u00a0000.',
  );
  const falling = answer(prompts(0.001), 'prompt_cost');
  expect(falling.answer).toContain(
    'TTFT does not grow with the prompt tokens: 12.2 ms at 10, 11.9 ms at 1\u00a0000.',
  );
  expect(falling.answer).toContain('(1.00× per doubling)');
  expect(falling.figures).not.toHaveProperty('per_token_ms');
  // No fixed part: 5 ms per token, with a few percent of noise per launch.
  const outputs = [50, 100, 200].map((n) =>
    pointOf(
      ['sequence'],
      [1, 200, n],
      [
        [5, 4.9],
        [5, 5.1],
      ],
    ),
  );
  expect(answer(outputs, 'output_cost').answer).toContain('no fixed part can be distinguished from 0');
});

test('distinguishes the knee by decode from scaling by output tokens', () => {
  // Steps take the same time at every batch, but prefill grows with batch².
  const points = [1, 4, 8].map((batch) =>
    pointOf(['throughput'], [batch, 8, 11], [[10 * batch * batch, 10]]),
  );
  const knee = answer(points, 'batch_knee');
  expect(knee.answer).toContain('No knee up to batch 8');
  // Batch 4: 44 tokens in 260 ms, batch 8: 88 in 740 ms.
  expect(knee.answer).toContain(
    'Output tokens/s, which include the prefill, gain less: 0.703× per doubling from 4 to 8',
  );
  expect(knee.answer).toContain('TPOT does not measurably grow with the batch');
  const far = sweep([1, 4, 8].map((batch) => [batch, 10 + 0.01 * batch]));
  expect(answer(far, 'batch_knee').answer).toContain('the fixed part far beyond the measured range.');
});

test('with one output token the knee is of output tokens, and utilization names each reason', () => {
  const points = [1, 2].map((batch) => pointOf(['throughput'], [batch, 8, 1], [[10, 0]]));
  const knee = answer(points, 'batch_knee');
  expect(knee.answer).toBe(
    'No knee up to batch 2, the largest measured: every doubling gave at least 2.00× the output tokens/s.',
  );
  expect(knee.figures['gain_1_2']).toMatchObject({
    source: 'output tokens/s, for each doubling of the batch',
  });
  expect(answer(points, 'utilization').answer).toBe(
    'Not enough data. GPU utilization: no GPU sample during the timed repeats. Decode MFU and decode MBU: one output token needs no decode step.',
  );
});

test('counts only the launches that ended as the named outcome says', () => {
  const row = { warmup_iterations: null, stable: null, interleaved: null, memory_bytes: null };
  const points = (['out_of_memory', 'stopped'] as const).map((outcome, i) => ({
    ...row,
    point: 'b1-p8-o11',
    launch: i + 1,
    outcome,
    text: null,
    memory_source: null,
  }));
  const { point, text } = pointOf(['latency'], [1, 8, 11], [[10, 10]], { points });
  expect(point).toBe('b1-p8-o11');
  expect(text).toBe('out of memory in 1 of 3 launches');
});

test('a small utilization keeps its digits', () => {
  expect(formatPercent(0.00018)).toBe('0.018 %');
  expect(formatPercent(0.0073)).toBe('0.7 %');
  expect(formatPercent(0)).toBe('0 %');
});

test('idle and bound report what is missing', () => {
  const points = sweep([
    [1, 10],
    [2, 10],
  ]);
  expect(answer(points, 'idle').answer).toBe('Not enough data: device work was not recorded.');
  expect(answer(points, 'bound').answer).toBe('Not enough data: not asked.');
  expect(answer(points, 'utilization').answer).toContain('Not enough data');
  expect(answersOf([pointOf(['latency'], [1, 8, 8], [])])).toEqual([]);
  expect(answer([pointOf(['latency'], [1, 8, 1], [[10, 0]])], 'regimes').answer).toContain('Not enough data');
});

test('idle time is 80 % of 10 ms and 10 of 12 ms for 2 ms of work per step', () => {
  const pointAt = (batch: number, tpot: number) => {
    const { point } = benchPoint([], batch, 8, 11);
    const work = [
      { point, launch: 0, kind: 'decode', stages: 10, kernels: 10, kernel_ns: 2e7, busy_ns: 2e7 },
    ];
    return pointOf(['throughput'], [batch, 8, 11], [[10, tpot]], { work });
  };
  const idle = answer([pointAt(1, 10), pointAt(8, 12)], 'idle');
  expectClose(idle.figures['idle_share_batch_1'], 0.8);
  expectClose(idle.figures['idle_ms_batch_8'], 10);
  expect(idle.answer).toContain('at batch 1 80 % of a decode step (8.00 ms of 10.0 ms)');
});

const variant = (label: string, tpots: number[]): BenchVariant => ({
  execution_id: label,
  label,
  engine_args: {},
  launches: tpots.length,
  points: [1, 4].map((batch) =>
    pointOf(
      ['latency'],
      [batch, 8, 11],
      tpots.map((tpot) => [20, tpot]),
    ),
  ),
  fits: [],
  answers: [],
  flags: [],
});

test('reports a significant difference of variants with its interval, and none otherwise', () => {
  const eager = variant('mode=eager', [20, 20.4, 19.6]);
  const [graph, unchanged] = variantAnswers([
    eager,
    variant('mode=cudagraph', [10, 10.2, 9.8]),
    variant('mode=other', [20.3, 19.7, 20.1]),
  ]);
  // Each launch takes half the time, so the geometric means differ by a factor of two.
  expectClose(graph!.figures['tpot_ms_b1-p8-o11'], 0.5);
  expect(graph!.answer).toContain('mode=cudagraph against mode=eager, at batch 1, 8 in + 11 out');
  expect(graph!.answer).toMatch(/TPOT 0\.500× \(95 % 0\.4\d+ to 0\.5\d+×\)/);
  expect(graph!.answer).toContain('TTFT not significant (1.00×');
  expect(graph!.answer).toContain('At the other points');
  expect(unchanged!.answer).toContain('TPOT not significant');
  // Two launches each, half the time, six comparisons: significant alone, but not after correction.
  const [few] = variantAnswers([variant('a', [20, 23]), variant('b', [10, 11.5])]);
  expect(few!.answer).toMatch(
    /TPOT 0\.500× \(95 % .* alone; too few launches for significance among 6 comparisons\)/,
  );
  expect(variantAnswers([eager])).toEqual([]);
  const [once] = variantAnswers([eager, variant('x', [10])]);
  expect(once!.answer).toContain('Not enough data: at least two launches of each');
});

test('reports a mean more uncertain than the range of means', () => {
  const point = pointOf(['latency'], [1, 8, 11], [[10, 10]]);
  const { tpot_ms: tpot } = point.latency;
  if (!('p50' in tpot)) throw new Error('no TPOT');
  const verdictFor = (ci95: [number, number]) =>
    answer(
      [
        {
          ...point,
          latency: { ...point.latency, tpot_ms: { ...tpot, mean: 10, ci95 } },
          expected: { ...point.expected, tpot: { low: 1, high: 9, unit: 'ms', explanation: '' } },
        },
      ],
      'latency',
    ).answer;
  expect(verdictFor([9.5, 10.5])).toContain('predicted from the roofline.');
  expect(verdictFor([8, 12])).toContain('predicted from the roofline, but within its uncertainty.');
});
