import { beforeAll, describe, expect, test } from 'vitest';
import { compareDocumentSchema, type CompareResult } from '../../model/documents/compare.js';
import type { Document } from '../../model/document.js';
import { importSession } from '../../session/archive-import.js';
import { openSession, type Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { gpuWorkload } from '../../facts/bench/test-bench.js';
import { clean, profileRows } from '../../facts/test-rows.js';
import { repetitions, sessionOf } from '../../facts/test-session.js';
import { kernel as kernelRow, sessionOf as traceOf, stage as stageRow } from '../../facts/trace/test-hand.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { attentionOf, attentionSamples, implementationOf } from './attention.js';
import { compareSessions, compareSides } from './compare.js';
import { recordingIssues } from './issues.js';
import type { SideKernel } from './side.js';
import { testSide } from './test-side.js';

const home = testHome();
const nsys = (name: string) =>
  imported(home, 'nsys-sqlite', fixture(`nsys-2025.3.1-h200/${name}.sqlite`), { name });

describe('captures of the same model with eager attention and with SDPA', () => {
  let comparison: Document<CompareResult>;
  beforeAll(async () => {
    const sessions = [await nsys('tiny-whole'), await nsys('tiny-nsys')];
    comparison = await compareSessions(sessions);
  }, 60_000);

  test('matches its schema', () => {
    expect(compareDocumentSchema.parse(comparison)).toEqual(comparison);
  });

  test('names the change of the attention implementation', () => {
    const decode = comparison.data.attention.find(({ phase }) => phase === 'decode');
    expect(decode).toMatchObject({
      switched: true,
      implementations: [['unfused (math or eager)'], ['cuDNN attention']],
    });
    expect(comparison.data.headlines.map(({ id }) => id)).toContain('attention_switched');
  });

  test('new and removed kernels per mean step, although the numbers of steps differ', () => {
    const decode = comparison.data.kernels.filter(({ phase }) => phase === 'decode');
    const cudnn = decode.find(({ name }) => name.startsWith('cudnn_generated'))!;
    // tiny.py has four layers.
    expect([cudnn.status, cudnn.values[0], cudnn.values[1]!.count]).toEqual(['new', null, 4]);
    const softmax = decode.find(({ short_name }) => short_name === 'softmax_warp_forward')!;
    expect([softmax.status, softmax.values[0]!.count, softmax.values[1]]).toEqual(['gone', 4, null]);
    const sampling = comparison.data.classes.find(
      (row) => row.phase === 'decode' && row.class === 'sampling',
    );
    expect(sampling!.values.map((value) => value!.count)).toEqual([1, 1]);
  });

  test('stages: kernels and launches per step, without significance inside the spread', () => {
    const decode = comparison.data.stages.find(({ phase }) => phase === 'decode')!;
    expect(decode.values.map((value) => [value!.instances, value!.kernels])).toEqual([
      [2, 219],
      [4, 182],
    ]);
    expect(decode.changes[0]).toBeNull();
    expect(decode.changes[1]!.significant).toBe(false);
  });

  test('waterfalls: bars of each side sum to its time, and their changes to the gain', async () => {
    const [decode] = comparison.data.waterfalls;
    expect([decode!.phase, decode!.profiled]).toEqual(['decode', true]);
    const sum = (valueOf: (bar: (typeof decode & object)['bars'][number]) => number) =>
      decode!.bars.reduce((all, bar) => all + valueOf(bar), 0);
    const [from, to] = decode!.times_ms.map((time) => time!.value!);
    expect(sum(({ values }) => values[0]!)).toBeCloseTo(from!, 6);
    expect(sum(({ values }) => values[1]!)).toBeCloseTo(to!, 6);
    expect(sum(({ changes }) => changes[1]!)).toBeCloseTo(to! - from!, 6);
    const stage = comparison.data.stages.find(({ phase }) => phase === 'decode')!;
    expect([from, to]).toEqual(stage.values.map((value) => expect.closeTo(value!.duration_ms.value!, 6)));
  });
});

test('under the profiler, bars are as recorded, also of a stage that took longer without it', async () => {
  const sessions: Session[] = [];
  for (const name of ['e_24_uncached-fixed', 'e_15_repeated_heads_collected-fault']) {
    const { id } = await importSession(`test/fixtures/diagnosis-validation/${name}.tgz`, home);
    sessions.push(await openSession(id, home));
  }
  const { data, issues } = await compareSessions(sessions);
  const [decode] = data.waterfalls;
  // The first session has no clean execution. The decode step of the second took 95 ms under the profiler and 116 ms without it.
  expect(decode).toMatchObject({ phase: 'decode', profiled: true });
  for (const [i, time] of decode!.times_ms.entries()) {
    const sumMs = decode!.bars.reduce((sum, { values }) => sum + values[i]!, 0);
    expect(sumMs).toBeCloseTo(time!.value!, 6);
  }
  expect(issues.map(({ code }) => code)).not.toContain('slower_clean_run');
}, 60_000);

test('status of kernels, significance of stages, tiles by position, a matrix of three', async () => {
  const a = await testSide(
    home,
    10,
    0.3,
    [
      { name: 'gone' },
      { name: 'fast' },
      { name: 'slow' },
      { name: 'often' },
      { name: 'rare', count: 4 },
      { name: 'same' },
    ],
    ['64x64x64', '64x64x64', '128x128x64'],
  );
  const later = [
    { name: 'new' },
    { name: 'fast', mean_ns: 900 },
    { name: 'slow', mean_ns: 1200 },
    { name: 'often', count: 2 },
    { name: 'rare', count: 2 },
    { name: 'same', mean_ns: 1040 },
  ];
  const b = await testSide(home, 10.4, 0.4, later, ['64x64x64', '128x64x64', '128x256x64']);
  const c = await testSide(home, 20, 0.4, later, ['64x64x64']);
  const pair = compareSides('trace', [a, b]);
  expect(Object.fromEntries(pair.kernels.map(({ name, status }) => [name, status]))).toEqual({
    gone: 'gone',
    new: 'new',
    fast: 'faster',
    slow: 'slower',
    often: 'more',
    rare: 'fewer',
    same: 'same',
  });
  const { between, ...counts } = pair.kernel_counts;
  expect([between, new Set(Object.values(counts))]).toEqual([0, new Set([1])]);
  // √(0.3² + 0.4²) = 0.5: 0.4 is within, 10 is not.
  expect(pair.stages[0]!.changes[1]).toMatchObject({ significant: false, ratio: 1.04 });
  expect(pair.headlines[0]!.text).toBe(
    'decode: no significant difference, within the spread of both: 10.0 ms → 10.4 ms; MFU 0.1 % → 0.1 %; idle 90 % → 90 %; launches 3 → 3.',
  );
  expect(pair.gemm_tiles).toEqual([
    { phase: 'decode', count: 1, tiles: ['64x64x64', '128x64x64'], matched_by: 'position' },
    { phase: 'decode', count: 1, tiles: ['128x128x64', '128x256x64'], matched_by: 'position' },
  ]);
  const matrix = compareSides('trace', [a, b, c]);
  expect(matrix.stages[0]!.changes.map((change) => change?.significant ?? null)).toEqual([null, false, true]);
  expect(matrix.kernels.every(({ values, changes }) => values.length === 3 && changes.length === 3)).toBe(
    true,
  );
  expect(matrix.gemm_tiles.every((row) => row.matched_by === 'share')).toBe(true);
  expect(matrix.headlines[0]!.text).toContain('2.00× as long');
  const vague = compareSides('trace', [
    await testSide(home, 20, 9, later, []),
    await testSide(home, 5, 2, later, []),
  ]);
  expect(vague.headlines[0]!.text).toContain('4.0× as fast');
  const shorter = compareSides('trace', [c, await testSide(home, 13, 0.4, later, [])]);
  expect(shorter.headlines[0]!.text).toContain('20.0 ms → 13.0 ms, 35 % less time;');
});

test('a matrix shows the GEMM kernels of all sessions, and which ones a kernel is only in', async () => {
  const first = await testSide(home, 10, 0.3, [{ name: 'k', count: 3 }], ['64x64x64']);
  const between = await testSide(home, 5, 0.3, [{ name: 'k' }, { name: 'once', mean_ns: 900_000 }], []);
  const { kernels, kernel_counts, headlines } = compareSides('trace', [first, between, first]);
  expect(kernels.map(({ name, status }) => [name, status])).toContainEqual(['once', 'between']);
  expect(kernel_counts).toMatchObject({ between: 1, same: 1 });
  const text = headlines.map((line) => line.text).join(' ');
  expect(text).toContain('GEMM kernels per decode step: 3 → 2 → 3.');
  const other = await testSide(home, 10, 0.3, [{ name: 'k', count: 3 }], ['128x64x64']);
  expect(compareSides('trace', [first, other]).headlines.map((line) => line.text)).toContain(
    'GEMM kernels per decode step: 3 in each; 1 with another tile: 64x64x64 → 128x64x64.',
  );
  // Neither is the most frequent.
  const order = await testSide(home, 10, 0.3, [{ count: 2 }], ['64x64x64', '32x64x64']);
  const swapped = await testSide(home, 10, 0.3, [{ count: 2 }], ['32x64x64', '64x64x64']);
  expect(compareSides('trace', [order, swapped]).headlines.map((line) => line.text)).toContain(
    'GEMM kernels per decode step: 2 in each; 2 with another tile: 1 × 64x64x64 → 32x64x64, 1 × 32x64x64 → 64x64x64.',
  );
});

test('across batch sizes: compares throughput, time per token, scaling and MFU instead of step times', async () => {
  // 1 token in 10 ms against 256 in 17.3 ms: 100 and 14798 tok/s.
  const single = await testSide(home, 10, 0.3, [{ name: 'a', count: 7 }], ['64x8x64'], 1);
  const many = await testSide(home, 17.3, 0.3, [{ name: 'b', count: 7 }], ['128x256x64'], 256);
  const { stages, headlines } = compareSides('trace', [single, many]);
  const [from, to] = stages[0]!.values;
  expect([from!.tokens_per_s.value, from!.ms_per_token.value]).toEqual([100, 10]);
  expect(to!.tokens_per_s.value).toBeCloseTo(14_797.7, 1);
  expect(to!.ms_per_token.value).toBeCloseTo(0.067_58, 5);
  expect(to!.mfu.value).toBeCloseTo(0.148, 3);
  const [stage] = headlines;
  for (const found of ['148×', '58 % of linear scaling', 'MFU', '1 → 256 tokens'])
    expect(stage!.text).toContain(found);
  expect(stage!.text).not.toMatch(/slower|faster/);
  // From many tokens to one, nothing is expected to scale.
  expect(compareSides('trace', [many, single]).headlines[0]!.text).not.toContain('scaling');
  const gemms = headlines.find(({ id }) => id === 'gemm_tiles')!.text;
  for (const found of ['GEMM kernels per decode step: 7 in each', '64x8x64 → 128x256x64'])
    expect(gemms).toContain(found);
  expect(headlines.at(-1)!.text).toBe(
    'Apart from the tokens per step, no known difference in workload, software or machine.',
  );
});

test('sessions of different models do not scale to each other', async () => {
  const single = await testSide(home, 10, 0.3, [], [], 1);
  const many = await testSide(home, 17.3, 0.3, [], [], 256);
  for (const [index, one] of [single, many].entries())
    one.session.manifest.workload = gpuWorkload({ batch_size: 256 ** index });
  expect(compareSides('trace', [single, many]).headlines[0]!.text).toContain('of linear scaling');
  const { workload } = many.session.manifest;
  many.session.manifest.workload = null;
  expect(compareSides('trace', [single, many]).headlines[0]!.text).not.toContain('scaling');
  many.session.manifest.workload = workload;
  many.session.manifest.workload!.model!.name = 'another';
  const [stage] = compareSides('trace', [single, many]).headlines;
  expect(stage!.text).toContain('148×');
  expect(stage!.text).not.toContain('scaling');
});

test('across batch sizes, a difference of the time per token is judged, as the table shows it', async () => {
  const single = await testSide(home, 10, 1, [], [], 1);
  const many = await testSide(home, 10.4, 1, [], [], 256);
  const { headlines, stages } = compareSides('trace', [single, many]);
  // Steps take equally long, tokens do not: 10 ms and 41 µs.
  expect(stages[0]!.changes[1]!.significant).toBe(true);
  expect(headlines[0]!.text).toMatch(
    /^decode: 100.tok\/s → 24.600.tok\/s \(246×\), per token 10\.0.ms → 41.µs, 96/,
  );
});

test('tiles of other GEMMs are gone or new; long values are cut in a sentence', async () => {
  const first = await testSide(home, 10, 0.3, [{ name: 'a', class: 'gemm' }], ['64x8x64'], 1);
  const second = await testSide(
    home,
    10,
    0.3,
    [{ name: 'a', class: 'gemm' }],
    ['128x256x64', '128x256x64'],
    1,
  );
  const argument = 'x'.repeat(200);
  first.session.manifest.executions[0]!.command = ['python3', 'a.py'];
  second.session.manifest.executions[0]!.command = ['python3', argument];
  const { headlines, environment } = compareSides('trace', [first, second]);
  const textOf = (id: string) => headlines.find((headline) => headline.id === id)!.text;
  expect(textOf('gemm_tiles')).toContain('by tile or kernel name: 2 × 128x256x64 new, 1 × 64x8x64 gone');
  // Both take 10.0 ms: there is nothing to explain.
  expect(textOf('environment')).toMatch(/^Known differences: arguments a\.py → x{30}…x{29}/);
  const slower = await testSide(home, 20, 0.3, [], [], 1);
  slower.session.manifest.executions[0]!.command = ['python3', argument];
  expect(compareSides('trace', [first, slower]).headlines.at(-1)!.text).toContain('and could explain it');
  expect(environment.find(({ label }) => label === 'arguments')!.values).toEqual(['a.py', argument]);
});

test('steps of unknown kind are compared by time, in the headline, too', async () => {
  const steps = async (ms: number) => {
    const side = await testSide(home, ms, 0.3, [], []);
    return { ...side, gemms: [], stages: side.stages.map((stage) => ({ ...stage, phase: 'other' })) };
  };
  const sides = [await steps(10), await steps(20)];
  expect(compareSides('profile', sides).headlines[0]!.text).toMatch(
    /^step: 10\.0 ms → 20\.0 ms, 2\.00× as long/,
  );
  // Neither side lacks what the other has.
  expect(recordingIssues('profile', sides)).toEqual([]);
});

test('models of one name and different sizes are a difference that could explain a change', async () => {
  const sessions = [await sessionOf(home, profileRows()), await sessionOf(home, profileRows())];
  const model = sessions[1]!.manifest.workload!.model!;
  const layers = model.config['num_hidden_layers'] as number;
  model.config = { ...model.config, num_hidden_layers: 2 * layers };
  const { data } = await compareSessions(sessions);
  const size = data.environment.find(({ label }) => label === 'model size')!;
  expect(size.could_explain).toBe('another model');
  expect(new Set(size.values).size).toBe(2);
});

test('sessions without a common stage say so', async () => {
  const [decode, prefill] = [await testSide(home, 10, 0.3, [], []), await testSide(home, 10, 0.3, [], [])];
  expect(compareSides('trace', [decode, prefill]).headlines.map(({ id }) => id)).not.toContain(
    'no_common_stage',
  );
  const other = { ...prefill, stages: [{ ...prefill.stages[0]!, phase: 'prefill' }] };
  expect(compareSides('trace', [decode, other]).headlines[0]!.text).toBe(
    `${decode.session.id} and ${prefill.session.id} have no stage in common.`,
  );
});

test('what an import does not know is not another value', async () => {
  const [known, unknown] = [await testSide(home, 10, 0.3, [], []), await testSide(home, 10, 0.3, [], [])];
  for (const { session } of [known, unknown]) session.manifest.workload = gpuWorkload();
  unknown.session.manifest.workload!.model!.dtype = 'unknown';
  const { environment } = compareSides('trace', [known, unknown]);
  expect(environment.find(({ label }) => label === 'dtype')).toMatchObject({
    values: [expect.any(String), null],
    could_explain: null,
  });
});

test('unrecorded parts are not 0 ms, not new and not removed', async () => {
  const whole = await testSide(home, 10, 0.3, [{ name: 'a' }], []);
  const bare = await testSide(home, 10, 0.3, [], []);
  const data = compareSides('profile', [whole, bare]);
  expect(data.classes.map(({ values, changes }) => [values[1], changes[1]])).toEqual([[null, null]]);
  expect(data.kernels).toEqual([]);
});

test('profiles of the embedded engine compare by operators, with the interval of the clean execution', async () => {
  const rows = profileRows();
  const sessions = [await sessionOf(home, rows), await sessionOf(home, rows)];
  sessions[1]!.manifest.workload!.threads = 4;
  sessions[1]!.manifest.software = { ...summary.software, torch: '2.11' };
  const { data } = await compareSessions(sessions);
  expect(data.what).toBe('profile');
  const decode = data.stages.find(({ phase }) => phase === 'decode')!;
  expect(decode.changes[1]).toMatchObject({ delta_ms: 0, significant: false });
  expect(data.kernels.map(({ name }) => name)).toContain('/gemm/N');
  expect(data.kernels.every(({ status }) => status === 'same')).toBe(true);
  expect(data.environment.map(({ label, values }) => [label, values])).toEqual([
    ['threads', ['1', '4']],
    ['torch', [null, '2.11']],
  ]);
  expect(data.environment.map(({ could_explain }) => could_explain)).toEqual([
    'host speed: launch overhead and time between steps',
    null,
  ]);
});

test('one program under nsys and under the PyTorch profiler has the same kernels', async () => {
  const kineto = await imported(home, 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'));
  const traced = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'));
  const { data, issues } = await compareSessions([traced, kineto]);
  expect(issues.map(({ text }) => text)).toContainEqual(
    expect.stringMatching(/decode.* are under different profilers, nsys .* and torch\.profiler /),
  );
  expect(data.kernel_counts).toMatchObject({ new: 0, gone: 0 });
  expect(data.kernels.length).toBe(54);
  expect(data.kernels.map(({ values }) => values[0]!.count)).toEqual(
    data.kernels.map(({ values }) => values[1]!.count),
  );
  // Facts that only one of the tools records are not differences.
  expect(data.headlines.at(-1)!.text).toBe('No known difference in workload, software or machine.');
}, 60_000);

test('a profile stopped before its operators compares by times', async () => {
  const { stages, iterations } = repetitions(clean);
  const bare = await sessionOf(home, { stages: stages!, iterations: iterations! });
  const { data } = await compareSessions([await sessionOf(home, profileRows()), bare]);
  const decode = data.stages.find(({ phase }) => phase === 'decode')!;
  expect(decode.values.map((value) => [value!.duration_ms.value, value!.busy_ms])).toEqual([
    [7.75, 10],
    [7.75, null],
  ]);
  expect(data.kernels).toEqual([]);
});

test("PyTorch captures on a CPU compare by operators' self time", async () => {
  const layer = () => imported(home, 'kineto', fixture('kineto-torch2.11-cpu/layer.json.gz'));
  const { data } = await compareSessions([await layer(), await layer()]);
  expect(data.what).toBe('profile');
  const { same, ...others } = data.kernel_counts;
  expect([same! > 0, Object.values(others).every((count) => count === 0)]).toEqual([true, true]);
  for (const { phase, values } of data.stages.filter((stage) => stage.values[0]!.busy_ms !== null)) {
    const [first] = values;
    const classes = data.classes.filter((row) => row.phase === phase);
    const sum = classes.reduce((ms, row) => ms + row.values[0]!.ms, 0);
    expect(first).toMatchObject({ kernels: null, launches: null, idle_ms: null });
    expect(sum).toBeCloseTo(first!.busy_ms!, 6);
    expect(sum).toBeLessThan(first!.duration_ms.value!);
  }
});

test('rejects sessions with nothing in common, and a single session', async () => {
  const onlySession = await sessionOf(home, profileRows());
  await expect(compareSessions([onlySession])).rejects.toMatchObject({ code: 'E_USAGE' });
  await expect(compareSessions([onlySession, await nsys('tiny-graph')])).rejects.toMatchObject({
    code: 'E_USAGE',
  });
});

test('only operators distinguish eager attention from the math fallback', () => {
  const softmax = { phase: 'decode', name: 'softmax_warp_forward' } as SideKernel;
  const names = (attention_operators: string[] | null) =>
    attentionOf({ kernels: [softmax], attention_operators }, 'decode');
  expect(names(null)).toEqual(['unfused (math or eager)']);
  expect(names([])).toEqual(['unfused (eager)']);
  expect(names(['aten::_scaled_dot_product_attention_math'])).toEqual(['unfused (SDPA math)']);
});

test('a softmax of sampling is no attention', () => {
  const softmax = { phase: 'sampling', name: '_topk_log_softmax_kernel', class: 'sampling' } as SideKernel;
  expect(attentionOf({ kernels: [softmax], attention_operators: null }, 'sampling')).toEqual([]);
});

test('training steps compare by kernels, too', async () => {
  const training = (kernelUs: number) =>
    traceOf({
      stages: [0, 1, 2].map((step) => stageRow(step, 'training', 1000 * step, 1000 * step + 900)),
      kernels: [0, 1, 2].map((step) => kernelRow(step, 1000 * step + 10, kernelUs, { name: 'dgrad' })),
    });
  const { data } = await compareSessions([await training(400), await training(800)]);
  expect(data.kernels).toMatchObject([{ phase: 'training', name: 'dgrad', status: 'slower' }]);
  expect(data.headlines[0]!.text).toMatch(/^training: /);
});

test('recognizes every attention implementation by its kernel', () => {
  for (const { name, sample } of attentionSamples)
    expect([sample, implementationOf(sample)]).toEqual([sample, name]);
  expect(implementationOf('void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm>')).toBeNull();
});
