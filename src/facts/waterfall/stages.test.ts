import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { SessionDatabase } from '../../session/query.js';
import { gap, kernel, type Rows, sessionOf, stage, us } from '../trace/test-hand.js';
import { traceScope } from '../derived/scope.js';
import { analyzeTrace } from '../trace/trace.js';
import { userDatabase } from '../derived/test-queries.js';
import { timelineWaterfalls } from './waterfall.js';

/*
 * µs      0      100    110         200   220   230           300         360   400
 * host    |load  |      |prefill    |     |decode 0           |decode 1         |   decode 1 ends at 380
 * sampling                                                    inside decode 1: 310 to 370
 * own                     |block 4 120-190|                   |block 5 300-380|
 * copy    [50-90 H2D]
 * kernels               [120-190]          [235-290]          [305-330] [340-360]   the second one by sampling
 * gaps          90-120              190-235          290-305       330-340
 */
const rows: Rows = {
  stages: [
    stage(1, 'load', 0, 100),
    stage(2, 'prefill', 110, 200),
    stage(3, 'decode', 220, 300, { step_index: 0 }),
    stage(4, 'decode', 300, 380, { step_index: 1 }),
    stage(5, 'sampling', 310, 370, { parent_id: 4 }),
    stage(6, 'other', 115, 195, { parent_id: 2, raw_name: 'block 4', phase_id: 2 }),
    stage(7, 'other', 300, 380, { parent_id: 4, raw_name: 'block 5', phase_id: 4 }),
    stage(8, 'other', 112, 192, { parent_id: 2, raw_name: 'NCCL:ncclAllReduce', phase_id: 2 }),
  ],
  copies: [
    {
      stage_id: 1,
      start_ns: 50 * us,
      dur_ns: 40 * us,
      exclusive_ns: 40 * us,
      kind: 'HtoD',
      src_kind: 'pinned',
      bytes: 630_000,
      stream: 1,
      context: 1,
    },
  ],
  kernels: [
    kernel(6, 120, 70),
    kernel(3, 235, 55),
    kernel(7, 305, 25),
    kernel(5, 340, 20, { class: 'norm', short_name: 'argmax' }),
  ],
  gaps: [
    { ...gap(90, { host: 25, launch_overhead: 5 }), stage_id: 6 },
    { ...gap(190, { host: 40, launch_overhead: 5 }), stage_id: 3 },
    { ...gap(290, { host: 10, launch_overhead: 5 }), stage_id: 7 },
    { ...gap(330, { host: 5, launch_overhead: 5 }), stage_id: 5 },
  ],
};

let database: SessionDatabase;
let waterfalls: StageWaterfall[];
beforeAll(async () => {
  const session = await sessionOf(rows);
  const connection = await session.connect();
  // The link of an H200 has 63 GB/s: 630 kB need 10 µs.
  const manifest = { ...session.manifest, hardware: { gpu_name: 'NVIDIA H200' } };
  const scope = await traceScope(connection, manifest);
  waterfalls = (await timelineWaterfalls({ ...session, manifest }, connection, scope)).stages;
  await connection.close();
  database = await userDatabase(session);
});
afterAll(() => database.close());

const stageOf = (kind: string): StageWaterfall =>
  waterfalls.find((stage) => (stage.name ?? stage.kind) === kind)!;
const inUs = ({ bars }: StageWaterfall) =>
  Object.fromEntries(bars.map(({ id, ms }) => [id, Number((ms * 1e3).toFixed(6))]));

test('splits loading into bytes over the link, copy time above it and host time', () => {
  expect(inUs(stageOf('load'))).toEqual({
    roofline: 10,
    'exposed_copy.htod_pinned': 30,
    'host.start_up': 50,
    'host.program': 10,
    unattributed: 0,
  });
  expect(stageOf('load').roofs).toEqual([expect.stringMatching(/^host link 63.0 GB\/s: PCIe 5.0/)]);
});

test('a request consists of its steps and the time between them', () => {
  const request = stageOf('request');
  // From 110 to 380; decode 0 starts 20 after the prefill ends.
  expect(request).toMatchObject({ instances: 1, measured_ms: { value: 0.27 } });
  expect(inUs(request)).toEqual({
    'kernels.gemm': 150,
    'kernels.norm': 20,
    // 5 of the 25 before 115, all 40 before 235, and so on.
    'host.program': 60,
    launch_overhead: 20,
    'host.shut_down': 20,
    unattributed: 0,
  });
  const parts = ['prefill', 'decode'].map(
    (kind) => stageOf(kind).instances * stageOf(kind).measured_ms.value! * 1e3,
  );
  expect(parts.reduce((sum, ms) => sum + ms, 20)).toBeCloseTo(270, 9);
});

test('kernels that the step launched before sampling are a device dependency', () => {
  const sampling = stageOf('sampling');
  expect(inUs(sampling)).toEqual({
    'kernels.norm': 20,
    device_dependency: 20,
    'host.program': 5,
    launch_overhead: 5,
    'host.shut_down': 10,
    unattributed: 0,
  });
  const dependency = sampling.bars.find(({ id }) => id === 'device_dependency')!;
  expect(dependency.note).toContain('launched before the stage');
  expect(dependency.parts).toEqual([{ label: 'GEMM of earlier stages', ms: 0.02, count: null }]);
});

test('merges ranges that differ only in numbers, and leaves out ranges of libraries', () => {
  expect(waterfalls.some(({ name }) => name?.startsWith('NCCL'))).toBe(false);
  const block = stageOf('block #');
  expect(block).toMatchObject({
    kind: 'other',
    instances: 2,
    roofline_ms: { value: null, reason: { code: 'program_range' } },
  });
  expect(block.rows.map(({ label, measured_ms }) => [label, measured_ms * 1e3])).toEqual([
    ['block 4', 80],
    ['block 5', 80],
  ]);
  // 115 to 195: 70 of kernels, 5 of the launch before, 5 of the host after. 300 to 380: 45 of kernels.
  expect(inUs(block)).toEqual({
    'kernels.gemm': 47.5,
    'kernels.norm': 10,
    launch_overhead: 7.5,
    'host.program': 5,
    'host.shut_down': 10,
    unattributed: 0,
  });
});

test('the query of every bar sums to the bar', async () => {
  for (const { kind, bars } of waterfalls) {
    for (const { id, sql, ms } of bars) {
      if (sql === null) continue;
      const result = await database.query<{ ms: number }>(sql);
      const sum = result.reduce((total, row) => total + row.ms, 0);
      expect(sum, `${kind} ${id}`).toBeCloseTo(ms, 9);
    }
  }
});

test('a decode step with more sequences than its prompt serves several requests', async () => {
  const batched = await sessionOf({
    ...rows,
    stages: rows.stages!.map((row) => ({
      ...row,
      batch_size: row.kind === 'prefill' ? 1 : row.kind === 'decode' ? 4 : null,
    })),
  });
  const database = await batched.connect();
  const result = await timelineWaterfalls(batched, database, await traceScope(database, batched.manifest));
  await database.close();
  expect(result.stages.map(({ kind }) => kind)).not.toContain('request');
  expect(result.withoutWaterfall).toEqual([
    { stage: 'request', reason: expect.stringContaining('continuous batching') as string },
  ]);
});

test('sampling that runs ahead of the device has one time in windows, phases and waterfall', async () => {
  const device = (from: number, to: number) => ({ device_start_ns: from * us, device_end_ns: to * us });
  const session = await sessionOf({
    stages: [
      stage(1, 'decode', 0, 100, { step_index: 0, ...device(20, 130) }),
      stage(2, 'sampling', 60, 95, { parent_id: 1, step_index: 0, ...device(110, 130) }),
      stage(3, 'decode', 100, 200, { step_index: 1, ...device(140, 230) }),
      stage(4, 'sampling', 160, 195, { parent_id: 3, step_index: 1, ...device(205, 230) }),
    ],
    kernels: [kernel(1, 20, 90), kernel(2, 110, 20), kernel(3, 140, 65), kernel(4, 205, 25)],
  });
  const connection = await session.connect();
  const scope = await traceScope(connection, session.manifest);
  const { stages } = await timelineWaterfalls(session, connection, scope);
  await connection.close();
  const sampling = stages.find(({ kind }) => kind === 'sampling')!;
  const phase = (await analyzeTrace(session)).data.phases.find(({ kind }) => kind === 'sampling')!;
  const user = await userDatabase(session);
  const [windows] = await user.query<{ us: number }>(
    "SELECT avg(end_ns - start_ns) / 1e3 AS us FROM windows WHERE kind = 'sampling'",
  );
  expect(windows!.us).toBe(22.5);
  expect(phase.wall.mean_ns).toBe(22.5 * us);
  expect(sampling.measured_ms.value).toBeCloseTo(0.0225, 12);
  expect(sampling.clock).toBe('device');
  await user.close();
});
