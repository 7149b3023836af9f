import { expect, test } from 'vitest';
import { capture, kernel, launch, range } from './test-capture.js';

test('splits an idle interval at the launch call, the wait of its thread, and the launch latency', async () => {
  const { database } = await capture({
    trace_ranges: [range(1, 'decode', 0, 100_000)],
    trace_api: [
      launch(0, 1_000, 1),
      { ...launch(1_500, 5_000, 90), name: 'cudaStreamSynchronize_v3020' },
      launch(10_000, 2_000, 2),
      launch(12_500, 1_000, 3),
      launch(13_500, 1_000, 4),
      launch(30_000, 1_000, 5),
    ],
    trace_kernels: [
      kernel(3_000, 2_000, 1), // its call returns at 1000; no idle time before the first activity
      kernel(13_000, 1_000, 2), // idle 5000-13000
      kernel(16_000, 1_000, 3), // idle 14000-16000
      kernel(30_000, 1_000, 4), // idle 17000-30000
      kernel(30_500, 1_000, 5), // overlaps
    ],
  });
  const gaps = await database.query(
    `SELECT start_ns, dur_ns, synchronization_ns AS sync, host_ns AS host, launch_overhead_ns AS overhead,
       launch_latency_ns AS latency, device_dependency_ns AS dependency, unattributed_ns AS unknown, cause
     FROM gaps ORDER BY start_ns`,
  );
  // Only the second kernel was launched onto an idle device by a call that had returned: 1000 ns, rounded up to a bin
  // of 64 ns.
  expect(gaps).toEqual([
    // 5000-6500 in cudaStreamSynchronize, 6500-10000 host, 10000-12000 in the call, 12000-13000 latency
    {
      start_ns: 5_000,
      dur_ns: 8_000,
      sync: 1_500,
      host: 3_500,
      overhead: 2_000,
      latency: 1_000,
      dependency: 0,
      unknown: 0,
      cause: 'host',
    },
    // The call returned at 13500, while the device was busy: 1024 latency, the remainder dependency.
    {
      start_ns: 14_000,
      dur_ns: 2_000,
      sync: 0,
      host: 0,
      overhead: 0,
      latency: 1_024,
      dependency: 976,
      unknown: 0,
      cause: 'launch_latency',
    },
    {
      start_ns: 17_000,
      dur_ns: 13_000,
      sync: 0,
      host: 0,
      overhead: 0,
      latency: 1_024,
      dependency: 11_976,
      unknown: 0,
      cause: 'device_dependency',
    },
  ]);
  // 30000-31000 and 30500-31500 on one stream: the first keeps its time.
  expect(await database.query('SELECT exclusive_ns AS e FROM kernels ORDER BY start_ns')).toEqual(
    [2_000, 1_000, 1_000, 1_000, 500].map((e) => ({ e })),
  );
  await database.close();
});

test('numbers steps, inherits warm-up, and assigns calls that leave their range to the enclosing one', async () => {
  const { database, issues } = await capture({
    trace_ranges: [
      range(1, 'warmup', 0, 1_000),
      range(2, 'prefill', 10, 500),
      range(3, 'prefill', 2_000, 3_000),
      range(4, 'mlp', 2_100, 2_500),
      range(5, 'decode', 3_000, 4_000),
      range(6, 'decode', 4_000, 5_000),
      range(7, 'sampling', 4_500, 4_900),
      range(8, 'prefill', 6_000, 7_000),
      range(9, 'decode', 7_000, Number.NaN),
      range(10, 'whole batch', 0, 10_000, { process_wide: 1 }),
      range(11, 'decode', 1_000, 2_000, { tid: 2 }),
      range(12, 'decode', 1_500, 2_500, { tid: 2 }),
    ],
    trace_api: [
      launch(100, 10, 1), // prefill of the warm-up
      launch(2_450, 100, 2), // leaves mlp: prefill
      launch(2_200, 100, 3), // mlp
      launch(4_600, 10, 4), // sampling
      launch(5_500, 10, 5), // between ranges of the thread: the range of the process
      launch(8_000, 90, 6), // in the unclosed decode
      launch(2_200, 10, 7, { tid: 3 }), // a thread without ranges: the range of the process contains it
    ],
    trace_kernels: [
      ...[1, 2, 3, 4, 5, 6, 7].map((id) => kernel(10_000 + id * 100, 50, id)),
      kernel(3_500, 50, 99), // orphan: no call; the first decode is open
    ],
  });
  const stages = await database.query(
    `SELECT raw_name AS name, kind, iteration AS i, step_index AS step, warmup,
       (SELECT raw_name FROM stages p WHERE p.stage_id = s.phase_id) AS phase, end_ns - start_ns AS dur
     FROM stages s WHERE tid = 1 ORDER BY start_ns, dur DESC`,
  );
  const stage = (
    name: string,
    kind: string,
    i: number | null,
    step: number | null,
    phase: string | null,
    dur: number,
    warmup = false,
  ) => ({
    name,
    kind,
    i,
    step,
    warmup,
    phase,
    dur,
  });
  expect(stages).toEqual([
    stage('whole batch', 'other', null, null, null, 10_000),
    stage('warmup', 'warmup', null, null, 'warmup', 1_000, true),
    stage('prefill', 'prefill', 0, 0, 'prefill', 490, true),
    stage('prefill', 'prefill', 0, 0, 'prefill', 1_000),
    stage('mlp', 'other', null, null, 'prefill', 400),
    stage('decode', 'decode', 0, 0, 'decode', 1_000),
    stage('decode', 'decode', 0, 1, 'decode', 1_000),
    stage('sampling', 'sampling', 0, 1, 'sampling', 400),
    stage('prefill', 'prefill', 1, 0, 'prefill', 1_000),
    stage('decode', 'decode', 1, 0, 'decode', 1_090),
  ]);
  const attributed = await database.query(
    `SELECT correlation AS id, raw_name AS name, attributed_by AS by FROM kernels JOIN stages USING (stage_id) ORDER BY id`,
  );
  expect(attributed.map(({ id, name, by }) => `${id} ${name} ${by}`)).toEqual([
    '1 prefill api',
    '2 prefill api',
    '3 mlp api',
    '4 sampling api',
    '5 whole batch process_range',
    '6 decode api',
    '7 whole batch process_range',
    '99 decode time',
  ]);
  const countByCode = Object.fromEntries(issues.map(({ code, count }) => [code, count]));
  expect(countByCode).toMatchObject({
    ranges_unclosed: 1,
    ranges_overlapping: 1,
    calls_clipped: 1,
    orphans: 1,
  });
  // Device work of a stage includes that of nested stages, so prefill includes mlp's kernel 3.
  expect(
    await database.query(
      `SELECT device, device_start_ns, device_end_ns FROM stages WHERE raw_name = 'prefill' AND start_ns = 2000`,
    ),
  ).toEqual([{ device: 0, device_start_ns: 10_200, device_end_ns: 10_350 }]);
  await database.close();
});

test('nested ranges of one kind are one stage with the outer bounds and the inner sizes', async () => {
  const { database } = await capture({
    trace_ranges: [
      // A user's mark around vLLM's mark around a layer.
      range(1, 'prefill', 0, 90),
      range(2, 'execute_context_2(64)_generation_0(0)', 10, 40),
      range(3, 'execute_context_2(36)_generation_0(0)', 45, 80),
      range(4, 'decode', 100, 200),
      range(5, 'execute_context_0(0)_generation_4(4)', 110, 190),
      range(6, 'step[DECODE bs=4]', 120, 180),
      range(7, 'layer', 130, 150),
      range(8, 'sampling', 160, 170),
      // A mark around all steps is not a step.
      range(9, 'decode', 200, 300),
      range(10, 'decode', 210, 240),
      range(11, 'decode', 250, 290),
      range(12, 'between', 240, 245),
      // The number shows that the outer one is the step.
      range(13, 'inferscope:decode:0:7', 300, 400),
      range(14, 'decode', 310, 340),
      range(15, 'decode', 350, 390),
      // Steps of torch.profiler: alone, around phases, and inside a phase.
      range(16, 'ProfilerStep#5', 400, 500),
      range(17, 'layer', 410, 420),
      range(18, 'ProfilerStep#6', 500, 600),
      range(19, 'prefill', 510, 590),
      range(20, 'warmup', 600, 700),
      range(21, 'ProfilerStep#7', 610, 690),
      // A user's mark around a batch of prompts and decoding sequences, and one around two of them.
      range(22, 'decode', 700, 800),
      range(23, 'execute_context_1(16)_generation_3(3)', 710, 790),
      range(24, 'decode', 800, 900),
      range(25, 'execute_context_1(16)_generation_3(3)', 810, 840),
      range(26, 'execute_context_0(0)_generation_4(4)', 850, 890),
    ],
    trace_api: [launch(165, 1, 1)],
    trace_kernels: [kernel(166, 5, 1)],
  });
  const stages = await database.query<Record<string, string | number | null>>(
    `SELECT stage_id AS id, kind, phase_id AS phase, iteration AS i, step_index AS step, batch_size AS batch, new_tokens AS tokens FROM stages ORDER BY start_ns, end_ns DESC`,
  );
  const row = ({ id, kind, phase, i, step, batch, tokens }: (typeof stages)[number]) =>
    `${id} ${kind} ${phase} ${i} ${step} ${batch} ${tokens}`;
  expect(stages.map(row)).toEqual([
    '1 prefill 1 0 0 2 100',
    '2 other 1 0 null 2 64',
    '3 other 1 0 null 2 36',
    '4 decode 4 0 0 4 4',
    '5 other 4 0 null 4 4',
    '6 other 4 0 null 4 null',
    '7 other 4 null null null null',
    '8 sampling 8 0 0 null null',
    '9 other null 0 null null null',
    '10 decode 10 0 1 null null',
    '11 other null null null null null',
    '12 decode 12 0 2 null null',
    '13 decode 13 0 7 null null',
    '14 other 13 0 null null null',
    '15 other 13 0 null null null',
    '16 other 16 null 5 null null',
    '17 other 16 null null null null',
    '18 other null null null null null',
    '19 prefill 19 1 0 null null',
    '20 warmup 20 null null null null',
    '21 other 20 null 7 null null',
    '22 mixed 22 1 0 4 19',
    '23 other 22 1 null 4 19',
    '24 other null 1 null null null',
    '25 mixed 25 1 1 4 19',
    '26 decode 26 1 2 4 4',
  ]);
  await database.close();
});

test('operators nest, with self time and the device time of their callees', async () => {
  const op = (op_id: number, name: string, start_ns: number, dur_ns: number) => ({
    op_id,
    name,
    start_ns,
    dur_ns,
    op_type: 'cpu_op',
  });
  const { database } = await capture({
    trace_ops: [op(3, 'aten::mm', 20, 30), op(1, 'aten::linear', 0, 100), op(2, 'aten::t', 5, 10)],
    trace_api: [
      launch(25, 10, 1),
      { ...launch(26, 2, 1), name: 'cuLaunchKernel', api: 'driver' }, // inside the runtime call, same id
      launch(60, 10, 2),
    ],
    trace_kernels: [kernel(100, 7, 1), kernel(120, 5, 2)],
    trace_copies: [
      {
        ...kernel(130, 3, 77),
        name: 'x',
        kind: 'HtoD',
        src_kind: 'pinned',
        dst_kind: 'device',
        bytes: 4,
        op_id: 2,
      },
    ],
  });
  // Calls are not part of self time, and the driver call is part of the runtime call.
  expect(
    await database.query(
      'SELECT op_id, parent_op_id AS parent, self_dur_ns AS self, device_dur_ns AS device, class FROM ops ORDER BY op_id',
    ),
  ).toEqual([
    { op_id: 1, parent: null, self: 50, device: 15, class: 'gemm' },
    { op_id: 2, parent: 1, self: 10, device: 3, class: 'copy' },
    { op_id: 3, parent: 1, self: 20, device: 7, class: 'gemm' },
  ]);
  expect(
    await database.query('SELECT op_id, api_start_ns AS api, tile, dtype FROM kernels ORDER BY start_ns'),
  ).toEqual([
    { op_id: 3, api: 25, tile: '64x8x64', dtype: 'fp16' },
    { op_id: 1, api: 60, tile: '64x8x64', dtype: 'fp16' },
  ]);
  await database.close();
});

test('time between nodes of a CUDA graph does not belong to the launch call', async () => {
  const node = (start_ns: number, graph_node: number) =>
    kernel(start_ns, 100, 1, { graph_node, graph_id: 4 });
  const { database } = await capture({
    trace_api: [{ ...launch(0, 1_000, 1), name: 'cudaGraphLaunch_v10000' }],
    trace_kernels: [node(500, 1), node(620, 2), node(740, 3)],
  });
  expect(
    await database.query(
      'SELECT dur_ns AS dur, launch_overhead_ns AS overhead, launch_latency_ns AS latency FROM gaps ORDER BY start_ns',
    ),
  ).toEqual([
    { dur: 20, overhead: 0, latency: 20 },
    { dur: 20, overhead: 0, latency: 20 },
  ]);
  await database.close();
});

test('an empty capture gives empty tables', async () => {
  const { database, issues } = await capture({});
  expect(issues).toEqual([]);
  expect(await database.query('SELECT count(*) AS n FROM kernels')).toEqual([{ n: 0 }]);
  await database.close();
});

test('a worker thread on which only a library marks ranges works for the open range of the program', async () => {
  const { database } = await capture({
    trace_ranges: [
      range(1, '## backward ##', 0, 10_000),
      range(2, 'nccl:all_reduce', 3_000, 3_500, { tid: 2 }),
    ],
    trace_api: [
      launch(1_000, 100, 1, { tid: 2 }),
      launch(3_200, 100, 2, { tid: 2 }),
      launch(5_000, 100, 3, { tid: 2 }),
    ],
    trace_kernels: [1, 2, 3].map((id) => kernel(5_000 + 1_000 * id, 50, id)),
  });
  expect(
    await database.query(
      'SELECT raw_name, attributed_by AS by FROM kernels JOIN stages USING (stage_id) ORDER BY correlation',
    ),
  ).toEqual([
    { raw_name: '## backward ##', by: 'thread' },
    { raw_name: 'nccl:all_reduce', by: 'api' },
    { raw_name: '## backward ##', by: 'thread' },
  ]);
  await database.close();
});
