import { beforeAll, describe, expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import { explainedBars } from '../../model/headline-time.js';
import type { Row } from '../../model/tables.js';
import type { Session } from '../../session/open.js';
import { gap, kernel, type Rows, sessionOf, stage, us } from '../trace/test-hand.js';
import { userDatabase } from '../derived/test-queries.js';
import { traceScope } from '../derived/scope.js';
import { analyzeTrace } from '../trace/trace.js';
import { timelineWaterfalls } from './waterfall.js';

/*
 * µs        0         20        40        60   70   80   90   100  110  120       140       160       180
 * host      |decode 0                                   |    |decode 1                               |  own end
 * stream 1      [gemm 10-30]                     [el 70-75]       [gemm 105-125]          [norm 150-190]
 * stream 2          [attention 20-40]
 * stream 3                  [nccl 35-50]
 * copy                                [H2D 50-60]
 * gaps                                        60-70   75...........105      125.......150
 */
const rows: Rows = {
  stages: [stage(1, 'decode', 0, 90, { step_index: 0 }), stage(2, 'decode', 100, 180, { step_index: 1 })],
  kernels: [
    // Two streams share 20 to 30, 5 µs each.
    kernel(1, 10, 20, { exclusive_ns: 15 * us, short_name: 'gemm' }),
    kernel(1, 20, 20, { exclusive_ns: 15 * us, stream: 2, class: 'attention', short_name: 'flash' }),
    // 35 to 40 belongs to attention.
    kernel(1, 35, 15, { exclusive_ns: 10 * us, stream: 3, class: 'communication', short_name: 'nccl' }),
    kernel(1, 70, 5, { class: 'elementwise', short_name: 'add' }),
    kernel(2, 105, 20, { short_name: 'gemm' }),
    kernel(2, 150, 40, { class: 'norm', short_name: 'norm' }),
  ],
  copies: [
    {
      stage_id: 1,
      start_ns: 50 * us,
      dur_ns: 10 * us,
      exclusive_ns: 10 * us,
      kind: 'HtoD',
      src_kind: 'pageable',
      dst_kind: 'device',
      bytes: 1000,
      stream: 1,
      context: 1,
    },
  ],
  gaps: [
    gap(60, { synchronization: 4, host: 3, launch_overhead: 2, launch_latency: 1 }),
    // Cut at 100: the dependency 93 to 105 has 7 µs in decode 0 and 5 in decode 1.
    gap(75, { host: 10, launch_overhead: 5, launch_latency: 3, device_dependency: 12 }),
    gap(125, { unattributed: 25 }),
  ].map((row, index): Row<'gaps'> => ({ ...row, stage_id: index === 0 ? 1 : 2 })),
  api_calls: [
    { start_ns: 55 * us, dur_ns: 7 * us, name: 'cudaStreamSynchronize', stage_id: 1 },
    // It does not wait, so the waiting time is not its.
    { start_ns: 63 * us, dur_ns: us / 2, name: 'cudaMemcpyAsync', stage_id: 1 },
  ],
};

async function waterfalls(session: Session): Promise<StageWaterfall[]> {
  const database = await session.connect();
  try {
    const scope = await traceScope(database, session.manifest);
    return (await timelineWaterfalls(session, database, scope)).stages;
  } finally {
    await database.close();
  }
}

/** The rows of each bar's query sum to the bar. */
async function expectQueriesToSum(session: Session, bars: StageWaterfall['bars']): Promise<void> {
  const database = await userDatabase(session);
  for (const { id, sql, ms } of bars) {
    expect(sql, id).not.toBeNull();
    const rowsOfBar = await database.query<{ ms: number }>(sql!);
    expect(
      rowsOfBar.reduce((sum, row) => sum + row.ms, 0),
      id,
    ).toBeCloseTo(ms, 9);
  }
  await database.close();
}

const inUs = (bars: readonly { id: string; ms: number }[]) =>
  Object.fromEntries(bars.map(({ id, ms }) => [id, Number((ms * 1e3).toFixed(6))]));

describe('a timeline counted by hand', () => {
  let session: Session;
  let decode: StageWaterfall;
  beforeAll(async () => {
    session = await sessionOf(rows);
    [decode] = (await waterfalls(session)) as [StageWaterfall];
  });

  test("cuts every part at the window's edges, for each instance", () => {
    expect(decode.rows.map(({ label, measured_ms }) => [label, measured_ms * 1e3])).toEqual([
      ['decode 0', 100],
      ['decode 1', 80],
    ]);
    expect(inUs(decode.rows[0]!.bars)).toEqual({
      'kernels.gemm': 15,
      'kernels.attention': 15,
      'kernels.elementwise': 5,
      exposed_comm: 10,
      'exposed_copy.htod_pageable': 10,
      launch_latency: 4,
      launch_overhead: 7,
      synchronization: 4,
      device_dependency: 7,
      'host.start_up': 10,
      'host.program': 13,
      unattributed: 0,
    });
    // The norm runs 150 to 190; 30 µs of it are before the step's device end.
    expect(inUs(decode.rows[1]!.bars)).toEqual({
      'kernels.norm': 30,
      'kernels.gemm': 20,
      device_dependency: 5,
      unattributed: 25,
    });
  });

  test('bars of the mean instance sum to the measured time; without a model the roofline is missing with a reason', () => {
    expect(decode).toMatchObject({
      kind: 'decode',
      instances: 2,
      clock: 'host',
      measured_ms: { value: 0.09, n: 2 },
      roofline_ms: { value: null, reason: { code: 'no_model' } },
      clean_ms: { value: null },
    });
    expect(decode.sum_error_share).toBeLessThan(1e-12);
    expect(inUs(decode.bars)).toMatchObject({
      'kernels.gemm': 17.5,
      'kernels.norm': 15,
      unattributed: 12.5,
      'host.program': 6.5,
    });
    expect(decode.bars.every(({ ms, note }) => ms >= 0 || note !== null)).toBe(true);
    expect(decode.bars.find(({ id }) => id === 'synchronization')!.parts).toEqual([
      { label: 'cudaStreamSynchronize', ms: 0.002, count: 0.5 },
    ]);
  });

  test('the query of every bar sums to the bar', async () => {
    await expectQueriesToSum(session, decode.bars);
  });
});

test('removes profiler overhead from host bars first, then from launches', async () => {
  // The steps take 100 and 80 µs under the profiler, 77 and 77 without: 13 µs of overhead per mean instance.
  const clean = [0, 1].map((step): Row<'stages'> => ({
    ...stage(step, 'decode', 1000 + 77 * step, 1077 + 77 * step, { step_index: step }),
    execution_id: 'clean',
    capture_id: 'clean-record',
  }));
  const session = await sessionOf({ ...rows, stages: [...rows.stages!, ...clean] }, { clean: 'clean' });
  const [decode] = await waterfalls(session);
  const bars = inUs(decode!.bars);
  expect(decode!.clean_ms).toMatchObject({ value: 0.077 });
  // All of the host's 5 + 6.5 µs are removed, and 1.5 of the launches' 3.5.
  expect(bars['profiler_overhead']).toBe(13);
  expect(bars['launch_overhead']).toBe(2);
  expect(bars).not.toHaveProperty('host.program');
  expect(decode!.sum_error_share).toBeLessThan(1e-12);
  await expectQueriesToSum(
    session,
    decode!.bars.filter(({ id }) => id === 'launch_overhead'),
  );
});

/** Two decode steps take 100 and 80 µs under the profiler, each `stepUs` without. */
async function withClean(stepUs: number): Promise<StageWaterfall> {
  const clean = [0, 1].map((step): Row<'stages'> => ({
    ...stage(step, 'decode', 1000 + stepUs * step, 1000 + stepUs * (step + 1), { step_index: step }),
    execution_id: 'clean',
    capture_id: 'clean-record',
  }));
  const session = await sessionOf({ ...rows, stages: [...rows.stages!, ...clean] }, { clean: 'clean' });
  const [decode] = await waterfalls(session);
  const { bars, ms } = explainedBars(decode!.bars);
  expect(1000 * ms).toBeCloseTo(stepUs, 9);
  expect(bars.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
  await expectQueriesToSum(
    session,
    bars.filter(({ id }) => id === 'unattributed' || id === 'kernels.gemm'),
  );
  return decode!;
}

test('a slower clean execution lengthens the bars of the device, not unattributed time', async () => {
  // 52.5 of the 90 µs are work; 12.5 were recorded as unattributed.
  expect(inUs((await withClean(95)).bars)).toMatchObject({
    'kernels.gemm': Number(((17.5 * 57.5) / 52.5).toFixed(6)),
    exposed_comm: Number(((5 * 57.5) / 52.5).toFixed(6)),
    unattributed: 12.5,
  });
});

test.each([
  // 12.5 of the 90 µs were recorded as unattributed.
  [
    'longer by chance',
    91.5,
    { unattributed: 12.5 + 1.5, profiler_overhead: -1.5 },
    'the clean execution took longer',
  ],
  // Host 11.5, launches 3.5 and waits for them sum to less than 60 µs.
  [
    'shorter than host and launches explain',
    30,
    { profiler_overhead: 60 },
    'shorter by more than its host time',
  ],
])(
  'unattributed time and profiler overhead take the difference to a clean time that is %s',
  async (_, stepUs, expected, note) => {
    const { bars } = await withClean(stepUs);
    expect(inUs(bars)).toMatchObject(expected);
    expect(bars.find(({ id }) => id === 'unattributed')!.note).toContain(note);
  },
);

test('a capture without phases is one stage from its first to its last activity', async () => {
  const session = await sessionOf({ ...rows, stages: [] });
  const [outside, ...otherStages] = await waterfalls(session);
  expect(otherStages).toEqual([]);
  // The stage runs from 10 to 190 µs.
  expect(outside).toMatchObject({ kind: 'outside', instances: 1, measured_ms: { value: 0.18 } });
  expect(inUs(outside!.bars)).toMatchObject({ 'kernels.norm': 40, device_dependency: 12, unattributed: 25 });
  expect(inUs(outside!.bars)).not.toHaveProperty('host.start_up');
  await expectQueriesToSum(session, outside!.bars);
});

/*
 * µs        0              50          90  100    120    140 150 155
 * host      |decode 0      |decode 1       |decode 2         |
 * stream 1  [gemm 0-90                 ]   [norm   ]
 * stream 2                             [attention  ]
 * stream 3  [nccl 0-140                                  ]
 * copy         [DtoD 10-155                                      ]
 */
test('cuts kernels that outlast a range by their exclusive time on several streams', async () => {
  const session = await sessionOf({
    stages: [0, 1, 2].map((step) =>
      stage(step + 1, 'decode', 50 * step, 50 * step + 50, { step_index: step }),
    ),
    kernels: [
      // Communication overlaps with gemm and attention, so only 120 to 140 is exclusive. Norm and attention share 100
      // to 120.
      kernel(1, 0, 140, { exclusive_ns: 20 * us, stream: 3, class: 'communication', short_name: 'nccl' }),
      kernel(1, 0, 90, { exclusive_ns: 90 * us, short_name: 'gemm' }),
      kernel(2, 90, 30, { exclusive_ns: 20 * us, stream: 2, class: 'attention', short_name: 'flash' }),
      kernel(2, 100, 20, { exclusive_ns: 10 * us, stream: 1, class: 'norm', short_name: 'norm' }),
    ],
    copies: [
      // The copy overlaps with all of them; only 140 to 155 is exclusive.
      {
        stage_id: 1,
        start_ns: 10 * us,
        dur_ns: 145 * us,
        exclusive_ns: 15 * us,
        kind: 'DtoD',
        bytes: 1000,
        stream: 4,
        context: 1,
      },
    ],
  });
  const [decode] = await waterfalls(session);
  const positive = (bars: readonly { id: string; ms: number }[]) =>
    Object.fromEntries(Object.entries(inUs(bars)).filter(([, value]) => value !== 0));
  expect(decode!.rows.map(({ bars }) => positive(bars))).toEqual([
    { 'kernels.gemm': 50 },
    { 'kernels.gemm': 40, 'kernels.attention': 10 },
    { 'kernels.attention': 10, 'kernels.norm': 10, exposed_comm: 20, 'exposed_copy.dtod': 10 },
  ]);
  expect(decode!.sum_error_share).toBeLessThan(1e-12);
  const [phase] = (await analyzeTrace(session)).data.phases;
  expect(phase!.rows.map((row) => [row.exposed_comm_ns, row.exposed_copy_ns])).toEqual([
    [0, 0],
    [0, 0],
    [20 * us, 10 * us],
  ]);
  await expectQueriesToSum(session, decode!.bars);
});
