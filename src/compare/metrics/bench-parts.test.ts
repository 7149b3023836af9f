import { expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import type { Row } from '../../model/tables.js';
import { testHome } from '../../session/test-folder.js';
import { planOf } from '../../facts/bench/test-bench.js';
import { sessionOf } from '../../facts/test-session.js';
import { sampleSessions } from './sample.js';

const home = testHome();
const b1 = benchPoint(['latency'], 1, 10, 5);
const b8 = benchPoint(['throughput'], 8, 10, 5);

/** One repeat of `ms`, with its first token at 2 ms. */
const repeat = (
  execution_id: string,
  { point, batch_size, input_len, output_len }: typeof b1,
  launch: number,
  ms: number,
  warmup = false,
): Row<'iterations'> => ({
  execution_id,
  point,
  batch_size,
  input_len,
  output_len,
  launch,
  warmup,
  pid: 100 + launch,
  iteration: 0,
  start_ns: 0,
  end_ns: ms * 1e6,
  ttft_ns: 2e6,
  tpot_ns: ((ms - 2) * 1e6) / 4,
});

const two = planOf([b1, b8], {
  variants: ['eager', 'cudagraph'].map((mode) => ({
    execution_id: mode,
    label: `mode=${mode}`,
    engine_args: { mode, attn: 'sdpa' },
    points: [b1, b8],
  })),
});
const iterations = [
  ...[
    [0, 10],
    [0, 12],
    [1, 20],
  ].map(([launch, ms]) => repeat('eager', b1, launch!, ms!)),
  repeat('eager', b1, 0, 99, true),
  repeat('eager', b8, 0, 30),
  repeat('eager', b8, 1, 32),
  repeat('cudagraph', b1, 0, 6),
  repeat('cudagraph', b1, 1, 8),
  // A profile's rows in the same session have no point.
  { ...repeat('eager', b1, 2, 500), point: null },
];
const sessionWith = (plan: ReturnType<typeof planOf>, rows: Row<'iterations'>[]) =>
  sessionOf(home, { iterations: rows }, { kind: 'bench', artifacts: { 'bench-plan': plan } });

test('distinguishes variants by label and points by name, with launches as values', async () => {
  const { metrics, identity } = await sampleSessions([await sessionWith(two, iterations)]);
  const by = Object.fromEntries(metrics.map((metric) => [metric.id, metric]));
  expect(by['mode=eager · b1-p10-o5 · e2e_ms']).toMatchObject({
    basis: 'launches',
    values: [11, 20],
    value: 15.5,
  });
  // TPOT (ms − 2) / 4: means of the launches (2 + 2.5) / 2 and 4.5.
  expect(by['mode=eager · b1-p10-o5 · tpot_ms']!.values).toEqual([2.25, 4.5]);
  expect(by['mode=cudagraph · b1-p10-o5 · e2e_ms']!.values).toEqual([6, 8]);
  // 8 sequences × 5 tokens in 30 and 32 ms.
  expect(by['mode=eager · b8-p10-o5 · output_tokens_per_s']).toMatchObject({
    better: 'higher',
    values: [40e9 / 30e6, 1250],
  });
  expect(Object.keys(by).some((id) => id.startsWith('mode=cudagraph · b8'))).toBe(false);
  // Points name their shape: it is not a fact of the benchmark.
  expect(identity.map(({ label }) => label).filter((label) => /batch|len/.test(label))).toEqual([]);
  expect(identity.filter(({ label }) => label.startsWith('engine argument'))).toEqual([
    { label: 'engine argument mode', part: 'engine', value: 'eager | cudagraph' },
    { label: 'engine argument attn', part: 'engine', value: 'sdpa' },
  ]);
});

test('one selected variant is named as in a session with only that variant, so that the two compare', async () => {
  const session = await sessionWith(two, iterations);
  const eager = await sampleSessions([session], 'mode=eager');
  const graph = await sampleSessions([session], 'mode=cudagraph');
  const ids = (sampled: typeof eager) => sampled.metrics.map(({ id }) => id);
  expect(ids(graph)).toEqual(ids(eager).filter((id) => id.startsWith('b1-')));
  expect(ids(graph)[0]).toBe('b1-p10-o5 · ttft_ms');
  expect(graph.identity[0]).toEqual({ label: 'engine argument mode', part: 'engine', value: 'cudagraph' });
  const onlyVariant = await sessionWith(planOf([b1]), [
    repeat('clean', b1, 0, 10),
    repeat('clean', b1, 0, 12),
  ]);
  const sampled = await sampleSessions([onlyVariant]);
  expect(ids(sampled)).toEqual(ids(graph));
  expect(sampled.metrics[0]).toMatchObject({ basis: 'repeats' });
});

test('reports an unknown label with the known ones; a session without variants has none', async () => {
  const session = await sessionWith(two, iterations);
  await expect(sampleSessions([session], 'mode=compile')).rejects.toMatchObject({
    code: 'E_USAGE',
    parts: { why: 'It measured mode=eager, mode=cudagraph.' },
  });
  const profile = await sessionOf(home, { iterations });
  await expect(sampleSessions([profile], 'mode=eager')).rejects.toMatchObject({ code: 'E_USAGE' });
});
