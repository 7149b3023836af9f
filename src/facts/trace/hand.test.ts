import { describe, expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { gap, kernel, type Rows, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

describe('windows', () => {
  /*
   * µs    0        100   110          210  220        300
   * host  |prefill |     |decode 0    |    |decode 1  |
   * device   [20-60]        [130-170]         [240-290]      [320-330]
   * gaps          60.......130      170......240     290...320
   */
  const rows: Rows = {
    stages: [
      stage(1, 'prefill', 0, 100),
      stage(2, 'decode', 110, 210, { step_index: 0, device_start_ns: 130 * us, device_end_ns: 170 * us }),
      stage(3, 'decode', 220, 300, { step_index: 1, device_start_ns: 240 * us, device_end_ns: 290 * us }),
      stage(4, 'sampling', 180, 200, { parent_id: 2, step_index: 0 }),
    ],
    kernels: [
      kernel(1, 20, 40),
      kernel(2, 130, 30, { class: 'attention', name: 'a' }),
      kernel(4, 160, 10, { class: 'sampling', name: 's' }),
      kernel(3, 240, 50),
      kernel(null, 320, 10, { api_start_ns: null, api_dur_ns: null, attributed_by: null }),
    ],
    gaps: [
      // Cut at the end of prefill (100) and the start of decode 0 (110).
      gap(60, { synchronization: 30, host: 30, launch_overhead: 10 }),
      // In decode 0's window until 220, then in decode 1's.
      gap(170, { synchronization: 20, host: 45, launch_overhead: 5 }),
      gap(290, { unattributed: 30 }),
    ],
  };

  test('a step lasts until the next one, gaps are cut part by part, and sampling inside a step counts in the step', async () => {
    const { phases, source, attribution } = (await analyzeTrace(await sessionOf(rows))).data;
    expect(phases.map(({ kind, instances, clock }) => [kind, instances, clock])).toEqual([
      ['prefill', 1, 'host'],
      ['decode', 2, 'host'],
      ['sampling', 1, 'host'],
    ]);
    const [prefill, decode, sampling] = phases;
    // 20 before the first kernel. The gap at 60 adds its 30 of synchronization and 10 of host.
    expect(prefill!.wall.mean_ns).toBe(100 * us);
    expect(prefill!.idle_by_cause.map(({ id, ns }) => [id, ns / us])).toEqual([
      ['synchronization', 30],
      ['host.start_up', 20],
      ['host', 10],
    ]);
    expect(prefill!.busy_ns).toBe(40 * us);
    // Decode 0 runs from 110 to 220: host 10 and launch 10 of the gap at 60, and 20 + 30 of the gap at 170. Decode 1
    // runs from 220 to 300, the end of its range: host 15 and launch 5 before its kernel, and 10 of the last gap.
    const [first, second] = decode!.rows;
    expect([first!.wall_ns, first!.idle_ns, first!.busy_ns, first!.kernels]).toEqual([
      110 * us,
      70 * us,
      40 * us,
      2,
    ]);
    expect([second!.wall_ns, second!.idle_ns, second!.busy_ns, second!.kernels]).toEqual([
      80 * us,
      30 * us,
      50 * us,
      1,
    ]);
    expect(Object.fromEntries(decode!.idle_by_cause.map(({ id, ns }) => [id, ns / us]))).toEqual({
      host: (10 + 30 + 15) / 2,
      synchronization: 10,
      launch_overhead: (10 + 5) / 2,
      unattributed: 5,
    });
    expect(decode!.main_cause).toBe('host');
    expect(sampling).toMatchObject({ kernels: 1, launches: 1, idle_ns: 20 * us });
    expect(source).toMatchObject({ start_ns: 20 * us, end_ns: 330 * us, timing: null });
    expect(attribution).toMatchObject({ orphans: 1, classified_share: { value: 1 } });
  });

  test('uses the device clock if the device runs behind the host ranges', async () => {
    const late = structuredClone(rows);
    late.stages![2]!.device_end_ns = 305 * us;
    late.stages![0]!.device_start_ns = 20 * us;
    late.stages![0]!.device_end_ns = 60 * us;
    const { phases } = (await analyzeTrace(await sessionOf(late))).data;
    const [prefill, decode] = phases;
    expect([prefill!.clock, decode!.clock]).toEqual(['device', 'device']);
    expect(prefill!.wall.mean_ns).toBe(40 * us);
    // From 130 to 240, then from 240 to the end of its last activity.
    expect(decode!.rows.map(({ wall_ns }) => wall_ns / us)).toEqual([110, 65]);
  });

  test('a warm-up uses the device clock if the steps after it do', async () => {
    const device = (from: number, to: number) => ({ device_start_ns: from * us, device_end_ns: to * us });
    const session = await sessionOf({
      stages: [
        stage(1, 'warmup', 0, 60, device(10, 90)),
        stage(2, 'prefill', 100, 130, device(110, 145)),
        stage(3, 'decode', 130, 160, device(150, 190)),
      ],
      kernels: [kernel(1, 10, 80), kernel(2, 110, 35), kernel(3, 150, 40)],
    });
    const { phases } = (await analyzeTrace(session)).data;
    expect(phases.map(({ kind, clock, rows: [row] }) => [kind, clock, row!.wall_ns / us])).toEqual([
      ['warmup', 'device', 80],
      ['prefill', 'device', 35],
      ['decode', 'device', 40],
    ]);
    expect([...new Set(phases.map(({ clock_why: why }) => why))]).toEqual([
      'all steps share one clock, and in every decode step the device was still busy after its range',
    ]);
  });

  test('a warm-up that runs ahead of the device stays on the host clock if no step does', async () => {
    const device = (from: number, to: number) => ({ device_start_ns: from * us, device_end_ns: to * us });
    const session = await sessionOf({
      stages: [stage(1, 'warmup', 0, 60, device(10, 90)), stage(2, 'decode', 130, 200, device(150, 190))],
      kernels: [kernel(1, 10, 80), kernel(2, 150, 40)],
    });
    const { phases } = (await analyzeTrace(session)).data;
    expect(phases.map(({ clock, clock_why }) => [clock, clock_why])).toEqual([
      [
        'host',
        'in every instance the device was still busy after its range, but only steps are timed on the device',
      ],
      ['host', 'the device was done before the range ended, in every instance'],
    ]);
  });

  test('one step without launches keeps the steps of its kind on the host clock', async () => {
    const silent = structuredClone(rows);
    // Prefill has device work after its range; decode 1 has no device work.
    Object.assign(silent.stages![0]!, { device_start_ns: 20 * us, device_end_ns: 105 * us });
    Object.assign(silent.stages![2]!, { device_start_ns: null, device_end_ns: null });
    const { phases } = (await analyzeTrace(await sessionOf(silent))).data;
    expect(phases.slice(0, 2).map(({ kind, clock }) => [kind, clock])).toEqual([
      ['prefill', 'device'],
      ['decode', 'host'],
    ]);
    expect(phases[1]!.rows.map(({ wall_ns }) => wall_ns / us)).toEqual([110, 80]);
  });

  test('takes times without the profiler from the clean execution', async () => {
    const clean = [0, 1, 2].map((step): Row<'stages'> => ({
      ...stage(step, 'decode', 1000 + 20 * step, 1010 + 20 * step, { step_index: step }),
      execution_id: 'clean',
      capture_id: 'clean-record',
    }));
    const session = await sessionOf({ ...rows, stages: [...rows.stages!, ...clean] }, { clean: 'clean' });
    const { phases, source } = (await analyzeTrace(session)).data;
    expect(source.timing).toEqual({ execution_id: 'clean' });
    // 20, 20 and 10 µs.
    expect(phases.find(({ kind }) => kind === 'decode')!.clean_ms).toMatchObject({ value: 0.05 / 3, n: 3 });
    expect(phases.find(({ kind }) => kind === 'prefill')!.clean_ms).toMatchObject({
      value: null,
      reason: { code: 'no_clean_stage' },
    });
    expect(phases.map(({ kind, instances }) => [kind, instances])).toEqual([
      ['prefill', 1],
      ['decode', 2],
      ['sampling', 1],
    ]);
  });
});

test('a prefill inside a warm-up is warm-up, and its kernels belong to the outermost range', async () => {
  const { phases, classes } = (
    await analyzeTrace(
      await sessionOf({
        stages: [
          stage(1, 'warmup', 0, 100),
          stage(2, 'prefill', 10, 50, { parent_id: 1, warmup: true }),
          stage(3, 'decode', 50, 90, { parent_id: 1, warmup: true }),
          stage(4, 'sampling', 70, 80, { parent_id: 3, warmup: true }),
          stage(5, 'decode', 110, 150),
        ],
        kernels: [kernel(2, 20, 10), kernel(3, 60, 10), kernel(4, 75, 5), kernel(5, 120, 10)],
      }),
    )
  ).data;
  expect(phases.map(({ kind, instances, kernels }) => [kind, instances, kernels])).toEqual([
    ['warmup', 1, 3],
    ['decode', 1, 1],
  ]);
  expect(classes.map(({ kind, rows }) => [kind, rows[0]!.count])).toEqual([
    [null, 4],
    ['warmup', 3],
    ['decode', 1],
  ]);
});

test('ranks and devices are never summed', async () => {
  const session = await sessionOf({
    kernels: [kernel(null, 10, 10), kernel(null, 10, 30, { rank: 1 }), kernel(null, 20, 20, { device: 1 })],
  });
  const { data } = await analyzeTrace(session);
  expect(
    data.devices.map(({ rank, device, kernel_ns, focus }) => [rank, device, kernel_ns / us, focus]),
  ).toEqual([
    [0, 0, 10, false],
    [0, 1, 20, false],
    [1, 0, 30, true],
  ]);
  expect(data.kernels_total).toEqual({ names: 1, count: 1, total_ns: 30 * us });
  expect(data.phases.map(({ kind, wall }) => [kind, wall.mean_ns / us])).toEqual([['outside', 30]]);
  expect((await analyzeTrace(session, { rank: 0, device: 1 })).data.kernels_total.total_ns).toBe(20 * us);
  await expect(analyzeTrace(session, { rank: 5 })).rejects.toMatchObject({ code: 'E_USAGE' });
});

test('nodes of a CUDA graph are one launch; a session without kernels reports what is missing', async () => {
  const graph = (from: number, id: number) =>
    kernel(1, from, 5, { graph_node: id, correlation: 99_999, api_start_ns: 0, api_dur_ns: 8 * us });
  const session = await sessionOf({
    stages: [stage(1, 'decode', 0, 100)],
    kernels: [graph(10, 1), graph(20, 2), graph(30, 3), kernel(1, 50, 10)],
  });
  const { phases, launches, short_kernels } = (await analyzeTrace(session)).data;
  expect(phases[0]).toMatchObject({ kernels: 4, launches: 2 });
  expect(launches.phases[0]).toMatchObject({ launches: 2, graph_launches: 1, kernels: 4 });
  expect(launches.layers).toMatchObject({ value: null, reason: { code: 'no_model' } });
  // Three kernels of 5 µs are under 10 µs: 15 of 25 µs. A kernel of 10 µs is not.
  expect(short_kernels.phases[0]).toMatchObject({ short: 3, count_share: 0.75, time_share: 0.6 });
  await expect(analyzeTrace(await sessionOf({ stages: [stage(1, 'decode', 0, 100)] }))).rejects.toMatchObject(
    {
      code: 'E_USAGE',
    },
  );
});

test('overlap is the time left out of exclusive time; two streams that take turns are serialized', async () => {
  const turns = await sessionOf({ kernels: [kernel(null, 0, 10), kernel(null, 10, 10, { stream: 2 })] });
  expect((await analyzeTrace(turns)).data.overlap).toMatchObject({
    serialized: true,
    compute_overlap_ns: 0,
  });
  const concurrent = await sessionOf({
    kernels: [
      kernel(null, 0, 10, { exclusive_ns: 5 * us }),
      kernel(null, 0, 10, { exclusive_ns: 5 * us, stream: 2 }),
      kernel(null, 5, 15, { class: 'communication', exclusive_ns: 10 * us, stream: 3 }),
    ],
    copies: [
      {
        start_ns: 18 * us,
        dur_ns: 4 * us,
        exclusive_ns: 2 * us,
        kind: 'HtoD',
        src_kind: 'pinned',
        dst_kind: 'device',
        bytes: 8000,
        stream: 4,
      },
    ],
  });
  const { overlap, copies } = (await analyzeTrace(concurrent)).data;
  expect(overlap).toMatchObject({
    serialized: false,
    compute_overlap_ns: 10 * us,
    comm_hidden_ns: 5 * us,
    copy_hidden_ns: 2 * us,
  });
  // Two collectives overlap, 0 to 10 and 5 to 15, and compute runs from 12 to 17: 3 of 15 µs are hidden, not 8 of 20.
  const collectives = await sessionOf({
    kernels: [
      kernel(null, 0, 10, { class: 'communication', exclusive_ns: 7.5 * us }),
      kernel(null, 5, 10, { class: 'communication', exclusive_ns: 4.5 * us, stream: 2 }),
      kernel(null, 12, 5, { exclusive_ns: 5 * us, stream: 3 }),
    ],
  });
  expect((await analyzeTrace(collectives)).data.overlap).toMatchObject({
    comm_ns: 15 * us,
    comm_hidden_ns: 3 * us,
  });
  // 8000 bytes in 4 µs.
  expect(copies[0]).toMatchObject({ kind: 'HtoD', memory: 'pinned', bandwidth_bytes_per_s: { value: 2e9 } });
});

test('operators have self time, device time, allocator calls, a verdict and a call path', async () => {
  const op = (
    op_id: number,
    name: string,
    from: number,
    durationUs: number,
    self: number,
    more: Row<'ops'> = {},
  ) => ({
    op_id,
    name,
    op_type: 'cpu_op',
    stage_id: 1,
    start_ns: from * us,
    dur_ns: durationUs * us,
    self_dur_ns: self * us,
    input_shapes: '[[1,8]]',
    ...more,
  });
  const session = await sessionOf({
    stages: [stage(1, 'decode', 0, 1000)],
    ops: [
      op(1, 'aten::linear', 0, 100, 60),
      op(2, 'aten::mm', 20, 40, 40, { parent_op_id: 1 }),
      op(3, 'aten::empty', 200, 90, 10, { allocated_bytes: 512 }),
      op(4, 'module: forward', 0, 500, 1, { op_type: 'python_function' }),
    ],
    api_calls: [
      { name: 'cudaMalloc', api: 'runtime', op_id: 3, stage_id: 1, start_ns: 205 * us, dur_ns: 80 * us },
      // A driver call inside it counts once; without a runtime call around it, it counts.
      { name: 'cuMemSetAccess', api: 'driver', op_id: 3, stage_id: 1, start_ns: 210 * us, dur_ns: 50 * us },
      { name: 'cuMemSetAccess', api: 'driver', op_id: 1, stage_id: 1, start_ns: 5 * us, dur_ns: 7 * us },
    ],
    kernels: [kernel(1, 70, 70, { op_id: 2 })],
  });
  const { operators } = (await analyzeTrace(session)).data;
  expect(operators!.phase).toBe('decode');
  const rows = operators!.rows.map((row) => [
    row.name,
    row.self_cpu_ns / us,
    row.device_ns / us,
    row.verdict,
  ]);
  expect(rows).toEqual([
    ['aten::mm', 40, 70, 'kernels'],
    ['aten::linear', 60, 0, 'scheduling'],
    ['aten::empty', 10, 0, 'allocation'],
  ]);
  expect(operators!.rows[0]!.call_path).toEqual(['aten::linear']);
  expect(operators!.rows[2]).toMatchObject({ allocated_bytes: 512, allocation_ns: 80 * us });
  expect(operators!.rows[1]!.allocation_ns).toBe(7 * us);
  // Host 60 + 40 + 10, kernels 70, allocation 80.
  expect(operators).toMatchObject({ verdict: 'scheduling' });
});

test('shares of operators include operators that are not shown', async () => {
  const session = await sessionOf({
    stages: [stage(1, 'decode', 0, 1000)],
    ops: Array.from({ length: 80 }, (_, index): Row<'ops'> => ({
      op_id: index + 1,
      stage_id: 1,
      name: `aten::op${index}`,
      op_type: 'cpu_op',
      start_ns: 10 * index * us,
      dur_ns: 10 * us,
      self_dur_ns: 10 * us,
    })),
    kernels: [kernel(1, 70, 70, { op_id: 2 })],
  });
  const { operators } = (await analyzeTrace(session)).data;
  const database = await session.connect();
  const [all] = await database.query<{ ns: number }>('SELECT sum(self_dur_ns)::DOUBLE AS ns FROM ops');
  await database.close();
  expect(operators!.rows.length).toBeLessThan(80);
  expect(operators!.self_cpu_total_ns).toBe(all!.ns);
  expect(all!.ns).toBe(800 * us);
});

test('assigns throttling to the phases in which it was sampled', async () => {
  const sample = (t: number, metric: string, value: number): Row<'telemetry'> => ({
    t_ns: t * us,
    scope: 'gpu0',
    metric,
    value,
  });
  const session = await sessionOf({
    stages: [stage(1, 'prefill', 0, 100), stage(2, 'decode', 100, 200)],
    kernels: [kernel(1, 10, 80), kernel(2, 110, 80)],
    telemetry: [50, 150, 250].flatMap((t) => [
      sample(t, 'throttle_bits', t === 150 ? 0x4 | 0x1 : 0x1),
      sample(t, 'power_w', t === 150 ? 700 : 300),
      sample(t, 'energy_j', t),
    ]),
  });
  const { telemetry } = (await analyzeTrace(session)).data;
  expect(telemetry!.events.map(({ kind, phases, start_ns }) => [kind, phases, start_ns / us])).toEqual([
    ['power_cap', ['decode'], 150],
  ]);
  expect(telemetry!.events[0]!.text).toBe(
    'GPU 0: clocks throttled (power cap) in one sample, in decode step.',
  );
  // Counters and bit masks have no mean.
  expect(telemetry!.series.map(({ metric }) => metric)).toEqual(['power_w']);
  const power = telemetry!.series.find(({ metric }) => metric === 'power_w')!;
  expect(power).toMatchObject({ unit: 'W', min: 300, max: 700 });
  expect(power.phases).toEqual([
    { kind: 'decode', mean: 700, samples: 1 },
    { kind: 'prefill', mean: 300, samples: 1 },
  ]);
});
