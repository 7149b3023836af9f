import { describe, expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import { explainDocumentSchema, type ExplainResult } from '../../model/documents/explain.js';
import { percentile } from '../../model/statistics.js';
import type { Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { gpuWorkload, planOf } from '../../facts/bench/test-bench.js';
import { analyzeProfile } from '../../facts/profile.js';
import { profileRows } from '../../facts/test-rows.js';
import { repetitions, sessionOf } from '../../facts/test-session.js';
import {
  gap,
  kernel,
  type Rows as TraceRows,
  sessionOf as traceSessionOf,
  stage,
  us,
} from '../../facts/trace/test-hand.js';
import { userDatabase } from '../../facts/derived/test-queries.js';
import { doubt } from '../findings/doubt.js';
import { findingContext, rankedFindings } from '../findings/findings.js';
import type { Rule } from '../findings/rule.js';
import { explainSession } from './explain.js';

const home = testHome();
const million = 1e6;

/**
 * Checks that bars sum and have text for every source, and that queries run in a database with only the session's
 * tables.
 */
async function expectConsistent(session: Session, { stages }: ExplainResult): Promise<void> {
  const database = await userDatabase(session);
  for (const { bars, measured_ms, sum_error_share } of stages) {
    expect(sum_error_share).toBeLessThan(0.001);
    const total = bars.reduce((sum, { ms }) => sum + ms, 0);
    expect(Math.abs(total - measured_ms.value!)).toBeLessThan(0.001 * measured_ms.value!);
    for (const { id, ms, note, sql } of bars) {
      expect(ms >= 0 || note !== null, id).toBe(true);
      if (sql === null) continue;
      const rows = await database.query<{ ms: number }>(sql);
      expect(
        rows.reduce((sum, row) => sum + row.ms, 0),
        id,
      ).toBeCloseTo(ms, 9);
    }
  }
  await database.close();
}

test('reports a busy machine first, and withholds causes that noise can produce', async () => {
  // Other processes used half a core on average (test-rows.ts).
  const sessionWithCores = (cores: number) =>
    sessionOf(home, profileRows(), { manifest: { hardware: { cpu_usable_cores: cores } } });
  const noisy: Rule = {
    id: 'noisy',
    title: '',
    docs: { finds: '', needs: '', gain: '', change: '', withheld: '' },
    references: [],
    noise: true,
    find: async () => ({ outcome: 'fired', findings: [doubtTitled('a'), doubtTitled('b', false)] }),
  };
  const doubtTitled = (title: string, noise?: boolean) =>
    doubt({
      title,
      cause: 'c',
      change: { kind: 'code', text: '', example: null },
      check: '',
      evidence: [],
      ...(noise === undefined ? {} : { noise }),
    });
  for (const [cores, expected] of [
    [1, ['b']],
    [4, ['a', 'b']],
  ] as const) {
    const session = await sessionWithCores(cores);
    const busy = cores === 1;
    const { preface, sentences } = (await explainSession(session)).data;
    expect(preface).toEqual(
      busy ? [expect.stringMatching(/^This machine was busy \(other processes used 0\.50 CPU cores\)/)] : [],
    );
    expect(sentences[0]).toContain('the roofline limit is');
    // On a busy machine median and fastest tenth describe the program better than the mean.
    expect(/median [\d.]+ ms, fastest tenth [\d.]+ ms/.test(sentences[0]!)).toBe(busy);
    const database = await session.connect();
    const { stages } = (await explainSession(session)).data;
    for (const { kind, median_ms, p10_ms } of stages.filter(
      ({ kind }) => kind === 'decode' || kind === 'prefill',
    )) {
      // A decode step lasts to the start of the next one; for the last step to the end of its repeat.
      const rows = await database.query<{ ms: number }>(
        `SELECT (CASE WHEN s.kind = 'decode' THEN coalesce(lead(s.start_ns) OVER (PARTITION BY s.pid, s.iteration, s.kind ORDER BY s.start_ns), i.end_ns) ELSE s.end_ns END - s.start_ns) / 1e6 AS ms
         FROM stages s JOIN iterations i USING (execution_id, pid, iteration)
         WHERE s.execution_id = 'clean' AND NOT s.warmup AND s.kind = '${kind}' ORDER BY 1`,
      );
      const sorted = rows.map(({ ms }) => ms);
      expect(median_ms).toBeCloseTo(percentile(sorted, 0.5), 9);
      expect(p10_ms).toBeCloseTo(percentile(sorted, 0.1), 9);
    }
    const context = await findingContext(session, database, null, []);
    const result = await rankedFindings(context, [noisy]);
    expect(result.findings.map(({ title }) => title)).toEqual(expected);
    const all = await rankedFindings(context, [
      { ...noisy, find: async () => ({ outcome: 'fired', findings: [doubtTitled('a')] }) },
    ]);
    expect(all.rules[0]!.outcome).toBe(busy ? 'withheld' : 'fired');
    expect(result.withheld.length).toBe(busy ? 1 : 0);
    await database.close();
  }
});

test('a profile: operators from one execution, times from the other, three sentences', async () => {
  const session = await sessionOf(home, profileRows());
  const result = await explainSession(session);
  expect(explainDocumentSchema.parse(result)).toEqual(result);
  const { stages, sentences } = result.data;
  const profileStages = (await analyzeProfile(session)).data.stages;
  for (const { kind, duration_ms } of profileStages.filter((stage) => stage.kind !== 'sampling'))
    expect(stages.find((stage) => stage.kind === kind)).toMatchObject({
      source: 'profile',
      measured_ms: duration_ms,
    });
  // By hand: measured 7.75, sampling 0.5, loop 0.25. A clean call takes 7, the profiled one 13 with operators of 10: all its
  // gaps and 3 more are overhead.
  const decode = stages.find(({ kind }) => kind === 'decode')!;
  const ms = Object.fromEntries(decode.bars.map((bar) => [bar.id, bar.ms]));
  expect(ms['host.sampling']).toBeCloseTo(0.5, 9);
  expect(ms['host.loop']).toBeCloseTo(0.25, 9);
  expect(ms['host.runtime_dispatch']).toBeUndefined();
  expect(ms['unattributed']).toBeCloseTo(-3, 9);
  expect(ms['nonessential.copy']).toBe(1);
  expect(decode.bars.reduce((sum, bar) => sum + bar.ms, 0)).toBeCloseTo(7.75, 9);
  expect(stages.map(({ kind }) => kind)).toEqual(['prefill', 'decode', 'request', 'warmup', 'sampling']);
  await expectConsistent(session, result.data);
  expect(sentences).toHaveLength(3);
  expect(sentences[0]).toMatch(
    /^A decode step takes 7\.8 ms \[0\.0, 33\.2\] \(n = 2 launches.*; the roofline limit is .*\.$/,
  );
});

test('a benchmark: few bars, and unrecorded causes are not explained', async () => {
  const point = benchPoint(['latency'], 2, 4, 3);
  const common = {
    samplingMs: [1, 0.5, 0.5],
    loopMs: 0.25,
    inputLen: 4,
    point: point.point,
    pid: 1,
    launch: 0,
  };
  const rows = repetitions([
    { ...common, iteration: 0, startMs: 0, prefillMs: 9, decodeMs: [4, 6] },
    { ...common, iteration: 1, startMs: 100, prefillMs: 11, decodeMs: [4, 6] },
  ]);
  const work = { point: point.point, launch: 0, copies: 0, copy_ns: 0, wall_ns: 0 };
  const session = await sessionOf(
    home,
    {
      ...rows,
      device_work: [
        { ...work, kind: 'decode', stages: 2, kernels: 20, kernel_ns: 3 * million, busy_ns: 3.2 * million },
      ],
    },
    {
      workload: gpuWorkload(),
      roofline: null,
      kind: 'bench',
      artifacts: { 'bench-plan': planOf([point]) },
    },
  );
  const { data } = await explainSession(session);
  await expectConsistent(session, data);
  const [decode, prefill] = data.stages;
  expect([decode!.kind, prefill!.kind, decode!.point]).toEqual(['decode', 'prefill', point.point]);
  const bars = new Map(decode!.bars.map((bar) => [bar.id, bar]));
  // Steps of 4.75 and 6.75 ms; 1.5 ms of kernels and 1.6 ms busy per step.
  expect(decode!.measured_ms.value).toBeCloseTo(5.75, 9);
  const kernels = ['roofline', 'serial', 'inefficiency.kernels'].reduce(
    (sum, id) => sum + (bars.get(id)?.ms ?? 0),
    0,
  );
  expect(kernels).toBeCloseTo(1.5, 9);
  expect(bars.get('exposed_copy.all')!.ms).toBeCloseTo(0.1, 9);
  // Sampling takes 0.5 of the 4.15 ms in which the device is idle, the loop around the calls 0.25; the remainder is
  // unknown.
  expect(bars.get('host.sampling')).toMatchObject({
    ms: expect.closeTo(0.5, 9) as number,
    confidence: 'high',
  });
  expect(bars.get('host.loop')!.ms).toBeCloseTo(0.25, 9);
  expect(bars.get('unattributed')).toMatchObject({ confidence: 'low' });
  expect(bars.get('unattributed')!.ms).toBeCloseTo(3.4, 9);
  expect(bars.get('unattributed')!.note).toContain('device idle time');
  // The prefill was not profiled: the roofline, sampling after it, and the remainder.
  expect(prefill!.bars.map(({ id }) => id)).toEqual(['roofline', 'host.sampling', 'unattributed']);
});

/** Each rank is a process of its own. */
const processOf = (rank: number) => ({ rank, pid: 100 + rank });

describe('a timeline', () => {
  test('explains each rank separately, with the bars of the slowest', async () => {
    const rankRows = (rank: number, slower: number) => ({
      stages: [stage(10 * rank + 1, 'decode', 0, 100 + slower, { step_index: 0, ...processOf(rank) })],
      kernels: [
        kernel(10 * rank + 1, 0, 50, { ...processOf(rank), device: rank, exclusive_ns: 50 * us }),
        kernel(10 * rank + 1, 90 + slower, 10, { ...processOf(rank), device: rank }),
      ],
      gaps: [
        { ...gap(50, { host: 40 + slower }), ...processOf(rank), device: rank, stage_id: 10 * rank + 1 },
      ],
    });
    const [first, second] = [rankRows(0, 0), rankRows(1, 20)];
    const session = await traceSessionOf(mergeRows(first, second));
    const { data } = await explainSession(session);
    expect(data.stages[0]).toMatchObject({
      measured_ms: { value: 0.12 },
      ranks: [
        { rank: 1, device: 1, measured_ms: 0.12 },
        { rank: 0, device: 0, measured_ms: 0.1 },
      ],
    });
    const rank0 = await explainSession(session, { rank: 0 });
    expect(rank0.data.stages[0]).toMatchObject({ measured_ms: { value: 0.1 }, ranks: [{ rank: 0 }] });
  });

  // Each costs some 20 queries: a capture of 922 devices took half a minute.
  test('with many ranks, compares the 64 with the most kernel time', async () => {
    const rows = Array.from({ length: 66 }, (_, rank) => ({
      stages: [stage(rank + 1, 'decode', 0, 200, { step_index: 0, ...processOf(rank) })],
      kernels: [kernel(rank + 1, 0, 50 + rank, { ...processOf(rank), device: rank })],
      gaps: [],
    }));
    const session = await traceSessionOf(
      rows.reduce<RankRows>(mergeRows, { stages: [], kernels: [], gaps: [] }),
    );
    const { ranks } = (await explainSession(session)).data.stages[0]!;
    expect(ranks.map(({ rank }) => rank).toSorted((a, b) => a! - b!)).toEqual(
      Array.from({ length: 64 }, (_, nth) => nth + 2),
    );
  });

  test('among equally slow ranks, shows the one that the others wait for', async () => {
    // Steps of 100 µs: rank 0 arrives after 50 µs, rank 1 after 88. Both finish after 98, and rank 0's step ends after
    // 102.
    const rankRows = (rank: number, host: number, end: number) => ({
      stages: [stage(10 * rank + 1, 'decode', 0, end, { step_index: 0, ...processOf(rank) })],
      kernels: [
        kernel(10 * rank + 1, 0, 50, { ...processOf(rank), device: rank }),
        kernel(10 * rank + 1, 50 + host, 48 - host, {
          ...processOf(rank),
          device: rank,
          class: 'communication',
          name: 'ncclDevKernel_AllReduce',
        }),
      ],
      gaps: [{ ...gap(50, { host }), ...processOf(rank), device: rank, stage_id: 10 * rank + 1 }],
    });
    const [first, second] = [rankRows(0, 0, 102), rankRows(1, 38, 100)];
    const session = await traceSessionOf(mergeRows(first, second));
    const { data } = await explainSession(session);
    expect(data.stages[0]).toMatchObject({
      measured_ms: { value: 0.1 },
      ranks: [{ rank: 1 }, { rank: 0, measured_ms: 0.102 }],
    });
    const bar = (document: typeof data, name: string) =>
      document.stages[0]!.bars.find(({ id }) => id === name)?.ms;
    expect(bar(data, 'exposed_comm.wire')).toBeCloseTo(0.01, 9);
    expect(data.preface).toEqual([
      'Showing rank 1 (GPU 1): the other rank waits 38.0 µs per decode step for it in collectives.',
    ]);
    expect(data.sentences[0]).toMatch(/^A decode step takes 0\.100 ms/);
    const rank0 = await explainSession(session, { rank: 0 });
    expect(rank0.data.stages[0]).toMatchObject({ measured_ms: { value: 0.102 } });
    expect(bar(rank0.data, 'exposed_comm.wire')).toBeCloseTo(0.01, 9);
    expect(bar(rank0.data, 'exposed_comm.skew')).toBeCloseTo(0.038, 9);
    expect(rank0.data.sentences[0]).toMatch(/^A decode step takes 0\.102 ms/);
  });

  test('a session without a waterfall says so, in the sentences too', async () => {
    const session = await sessionOf(home, {}, { kind: 'import', workload: null, roofline: null });
    const { data } = await explainSession(session);
    expect(data.stages).toEqual([]);
    expect(data.without_waterfall).toHaveLength(1);
    // No rule had data, so the summary does not mention changes.
    expect(data.rules.every(({ outcome }) => outcome === 'not_applicable')).toBe(true);
    expect(data.preface).toEqual([expect.stringMatching(/^No waterfall: /)]);
    expect(data.sentences).toEqual([]);
  });
});

test('the first sentence has both times if the profiler added time', async () => {
  const session = await traceSessionOf(
    {
      stages: [
        stage(1, 'decode', 0, 100, { step_index: 0 }),
        {
          ...stage(1, 'decode', 1000, 1060, { step_index: 0 }),
          execution_id: 'clean',
          capture_id: 'clean-record',
        },
      ],
      kernels: [kernel(1, 0, 30), kernel(1, 90, 10)],
      gaps: [{ ...gap(30, { host: 55, launch_overhead: 5 }), stage_id: 1 }],
    },
    { clean: 'clean' },
  );
  const { sentences } = (await explainSession(session)).data;
  expect(sentences[0]).toContain('A decode step takes 60.0 µs (n = 1, 0.100 ms under the profiler)');
});

type RankRows = Required<Pick<TraceRows, 'stages' | 'kernels' | 'gaps'>>;

/** Rows of two ranks in one session. */
function mergeRows(first: RankRows, second: RankRows): RankRows {
  return {
    stages: [...first.stages, ...second.stages],
    kernels: [...first.kernels, ...second.kernels],
    gaps: [...first.gaps, ...second.gaps],
  };
}
