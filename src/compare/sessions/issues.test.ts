import { expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { figure, missing } from '../../model/figure.js';
import { testHome } from '../../session/test-folder.js';
import { timingIssues } from './issues.js';
import type { Side } from './side.js';
import { testSide } from './test-side.js';

const home = testHome();

test('names differences between profiled and clean times, and times without such a difference', async () => {
  const timed = async (is_clean: boolean, profiled: boolean): Promise<Side> => {
    const clean = await testSide(home, 10, 0.3, [], []);
    const more = { is_clean, ...(profiled ? { profiled_ms: figure(20, 'ms', 'hand') } : {}) };
    return { ...clean, stages: clean.stages.map((stage) => ({ ...stage, ...more })) };
  };
  const [both, traced, untraced] = [
    await timed(true, true),
    await timed(false, true),
    await timed(true, false),
  ];
  expect(timingIssues([both, both])).toEqual([]);
  expect(timingIssues([traced, traced])).toEqual([]);
  expect(timingIssues([both, traced])).toMatchObject([
    {
      code: 'times_under_profiler',
      severity: 'info',
      text: expect.stringMatching(/^Times of decode are those under/) as string,
    },
  ]);
  expect(timingIssues([untraced, traced])).toMatchObject([
    {
      severity: 'warning',
      text: expect.stringContaining(`except those of ${untraced.session.id}`) as string,
    },
  ]);
});

test('notes that a roofline is unknown on one side', async () => {
  const limited = async (limit: StageWaterfall['roofline_ms']): Promise<Side> => ({
    ...(await testSide(home, 10, 0.3, [], [])),
    waterfalls: [
      {
        kind: 'decode',
        source: 'trace',
        clean_ms: figure(10, 'ms', 'hand'),
        measured_ms: figure(10, 'ms', 'hand'),
        roofline_ms: limit,
      } as StageWaterfall,
    ],
  });
  const known = await limited(figure(5, 'ms', 'hand'));
  const unknown = await limited(missing('no_model', 'not recorded'));
  expect(timingIssues([known, known])).toEqual([]);
  expect(timingIssues([unknown, unknown])).toEqual([]);
  expect(timingIssues([known, unknown])).toMatchObject([
    {
      code: 'no_roofline_on_a_side',
      text: expect.stringContaining(`The roofline of ${unknown.session.id} is unknown: `) as string,
    },
  ]);
});

test('notes bars that are longer than the kernels, since the machine was slower without the profiler', async () => {
  const timed = async (profiledMs: number): Promise<Side> => ({
    ...(await testSide(home, 10, 0.3, [], [])),
    waterfalls: [
      {
        kind: 'decode',
        source: 'trace',
        clean_ms: figure(10, 'ms', 'hand'),
        measured_ms: figure(profiledMs, 'ms', 'hand'),
        roofline_ms: figure(5, 'ms', 'hand'),
      } as StageWaterfall,
    ],
  });
  const [slower, same] = [await timed(6.4), await timed(9.9)];
  expect(timingIssues([slower, same])).toMatchObject([
    {
      code: 'slower_clean_run',
      text: expect.stringMatching(
        `^${slower.session.id} \\(decode 10.0 ms instead of 6.40 ms\\) took longer without the profiler:`,
      ) as string,
    },
  ]);
  expect(timingIssues([slower, slower]).map(({ code }) => code)).toEqual(['slower_clean_run']);
});

test('names a missing clean execution only where there is none, with the profiler that was used', async () => {
  const clean = await testSide(home, 10, 0.3, [], []);
  const traced = (executions: Side['session']['manifest']['executions'], profiler = 'nsys'): Side => ({
    ...clean,
    profiler,
    session: { ...clean.session, manifest: { ...clean.session.manifest, executions } } as Side['session'],
    stages: clean.stages.map((stage) => ({ ...stage, is_clean: false })),
  });
  const both: Side = {
    ...clean,
    stages: clean.stages.map((stage) => ({
      ...stage,
      is_clean: true,
      profiled_ms: figure(20, 'ms', 'hand'),
    })),
  };
  const [execution] = clean.session.manifest.executions;
  const textOf = (side: Side) => timingIssues([both, side])[0]!.text;
  expect(textOf(traced([{ ...execution!, purpose: 'clean' }]))).toContain('has no such times without it');
  const profiled = [{ ...execution!, purpose: 'profiled' as const }];
  expect(textOf(traced(profiled))).toContain('--evaluator none,nsys)');
  expect(textOf(traced(profiled, 'torch.profiler'))).toContain('--evaluator none,torch)');
});

test('says once that sessions ran several batch sizes', async () => {
  const ran = async (...batch_sizes: number[]): Promise<Side> => {
    const side = await testSide(home, 10, 0.3, [], []);
    return { ...side, stages: side.stages.map((stage) => ({ ...stage, batch_sizes })) };
  };
  const [one, two, other] = [await ran(1, 16), await ran(1, 16), await ran(1, 8)];
  expect(timingIssues([one, two, other, await ran(1)]).map(({ text }) => text)).toEqual([
    expect.stringContaining(`${one.session.id}, ${two.session.id} ran several batch sizes (1, 16)`),
    expect.stringContaining(`${other.session.id} ran several batch sizes (1, 8)`),
  ]);
});

test('notes operators that are longer than their bars, which are scaled to the time without the profiler', async () => {
  const timed = async (profiledMs: number): Promise<Side> => ({
    ...(await testSide(home, 10, 0.3, [{ name: 'aten::mm' }], [])),
    waterfalls: [
      {
        kind: 'decode',
        source: 'operators',
        clean_ms: figure(4.3, 'ms', 'hand'),
        measured_ms: figure(profiledMs, 'ms', 'hand'),
        roofline_ms: missing('no_model', 'not recorded'),
      } as StageWaterfall,
    ],
  });
  const [slower, same] = [await timed(21.7), await timed(4.31)];
  expect(timingIssues([same, same])).toEqual([]);
  expect(timingIssues([slower, same])).toMatchObject([
    {
      code: 'operators_under_profiler',
      text: expect.stringContaining(`${slower.session.id} are as`) as string,
    },
  ]);
});

test('a stage that has no time without the profiler does not deny that the session has a clean execution', async () => {
  const run = async (sampled: boolean): Promise<Side> => {
    const one = await testSide(home, 10, 0.3, [], []);
    const [decode] = one.stages;
    const profiled = figure(20, 'ms', 'hand');
    return {
      ...one,
      stages: [
        { ...decode!, is_clean: true, profiled_ms: profiled },
        { ...decode!, phase: 'sampling', is_clean: sampled, profiled_ms: profiled },
      ],
    };
  };
  const [without, having] = [await run(false), await run(true)];
  expect(timingIssues([without, having]).map(({ text }) => text)).toEqual([
    `Times of sampling are those under the profiler: ${without.session.id} has no such times without it.`,
  ]);
});
