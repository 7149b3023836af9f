import { afterAll, beforeAll, expect, test } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { planOf } from '../facts/bench/test-bench.js';
import { sessionOf } from '../facts/test-session.js';
import { benchPoint } from '../model/bench.js';
import { homeFolders } from '../session/home.js';
import { renameSession } from '../session/edit.js';
import { openSession } from '../session/open.js';
import { comparedSide, refuseSame } from '../compare/metrics/bench-side.js';
import { parseGates } from './bench-compare.js';
import { writeBaseline } from '../compare/metrics/baseline-store.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-bench-compare-'));
const home = homeFolders({ INFERSCOPE_HOME: root });
afterAll(() => rmSync(root, { recursive: true }));

const point = benchPoint(['latency'], 1, 4, 3);
const file = join(root, 'perf', 'base.json');
let id: string;
beforeAll(async () => {
  const variants = ['a:1', 'b'].map((value) => ({
    execution_id: value,
    label: `mode=${value}`,
    engine_args: { mode: value },
    points: [point],
  }));
  const rows = ['a:1', 'b'].flatMap((execution_id) =>
    [0, 1].map((launch) => ({
      execution_id,
      point: point.point,
      launch,
      batch_size: 1,
      input_len: 4,
      output_len: 3,
      start_ns: 0,
      end_ns: 9e6,
      ttft_ns: 1e6,
      tpot_ns: 4e6,
      warmup: false,
    })),
  );
  const session = await sessionOf(
    home,
    { iterations: rows },
    { kind: 'bench', artifacts: { 'bench-plan': planOf([point], { variants }) } },
  );
  ({ id } = session);
  await renameSession(session, 'run:one', home);
  const { side, identity, metrics } = await comparedSide('@last:mode=b', home);
  const baseline = {
    name: 'main',
    set_at: '2026-11-21T00:00:00.000Z',
    sessions: side.sessions,
    identity,
    metrics,
  };
  await writeBaseline(baseline, undefined, home);
  await writeBaseline(baseline, file, home);
});

test('a side is a session, a variant of one (colons in name and label), a baseline by name, or its file', async () => {
  const session = await comparedSide('run:one', home);
  expect(session.side).toMatchObject({ baseline: null, variant: null, sessions: [{ id }] });
  expect(session.metrics[0]!.id).toBe('mode=a:1 · b1-p4-o3 · ttft_ms');
  const variant = await comparedSide('run:one:mode=a:1', home);
  expect(variant.side).toMatchObject({ selector: 'run:one:mode=a:1', variant: 'mode=a:1' });
  expect(variant.metrics[0]!.id).toBe('b1-p4-o3 · ttft_ms');
  expect((await comparedSide('main', home)).side).toMatchObject({ baseline: 'main', sessions: [{ id }] });
  expect((await comparedSide(file, home)).metrics).toEqual(
    (await comparedSide('@last:mode=b', home)).metrics,
  );
});

test('an unknown side is an error that lists what exists', async () => {
  await expect(comparedSide('nope', home)).rejects.toMatchObject({
    code: 'E_SESSION_NOT_FOUND',
    parts: { why: expect.stringContaining('Baselines: main.') },
  });
  await expect(comparedSide('@last:mode=c', home)).rejects.toMatchObject({
    code: 'E_USAGE',
    parts: { why: 'It measured mode=a:1, mode=b.' },
  });
  await expect(comparedSide(join(root, 'none.json'), home)).rejects.toMatchObject({ code: 'E_USAGE' });
});

test('a session with a name that ends in .json is a side', async () => {
  await renameSession(await openSession(id, home), 'results.json', home);
  expect((await comparedSide('results.json', home)).side).toMatchObject({
    baseline: null,
    sessions: [{ id }],
  });
  await renameSession(await openSession(id, home), 'run:one', home);
});

test('compares two variants of one session, but not a variant with itself', async () => {
  const side = async (selector: string) => (await comparedSide(selector, home)).side;
  const [session, a, b, main] = [
    await side('@last'),
    await side('@last:mode=a:1'),
    await side('@last:mode=b'),
    await side('main'),
  ];
  expect(() => refuseSame(a, b)).not.toThrow();
  for (const [from, to] of [
    [session, session],
    [a, a],
    [session, a],
    [main, b],
  ] as const) {
    expect(() => refuseSame(from, to)).toThrow('share session');
  }
});

test('--fail-on accepts shares and percentages, lists and repeats', () => {
  expect(parseGates('ttft=10%, tpot=0.05', [{ metric: 'e2e', share: 0 }])).toEqual([
    { metric: 'e2e', share: 0 },
    { metric: 'ttft', share: 0.1 },
    { metric: 'tpot', share: 0.05 },
  ]);
  for (const bad of ['tpot', 'tpot=', 'tpot=5', 'tpot=-1%', '=5%', 'tpot=5%,']) {
    expect(() => parseGates(bad)).toThrow('--fail-on');
  }
});
