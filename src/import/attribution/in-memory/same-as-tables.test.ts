import { expect, test } from 'vitest';
import type { Issue } from '../../../model/document.js';
import type { Workbench } from '../../../model/workbench.js';
import { createTraceTables, dropTraceTables, traceTables, type TraceTable } from '../../trace-tables.js';
import { attribute } from '../attribute.js';
import { importWith } from '../test-import.js';
import type { InMemoryRanges } from './ranges.js';
import { eventArrays, sortedEvents, type InMemoryTrace } from './trace.js';
import type { InMemoryEvents } from './events.js';

type Row = Record<string, number>;
type Capture = Record<'trace_ranges' | 'trace_api' | 'trace_kernels' | 'trace_copies', Row[]>;

const names = [
  'prefill',
  'decode',
  'warmup',
  'layer',
  'cudaLaunchKernel',
  'cudaStreamSynchronize',
  'runtime',
  'nvjet_sm90_hsh_64x8_64x16_1x1_v_bz_TNN',
  'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)',
  'HtoD',
  'pinned',
  'device',
  'decode_step_12',
  'execute_context_0(0)_generation_4(4)',
  'execute_context_1(64)_generation_0(0)',
  'ProfilerStep#3',
  'void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::Half, long, unsigned int, 2, 2, -2>',
  'flash_fwd_splitkv_kernel',
  'void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>',
  'void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>',
  '1,1,1',
  '64,1,1',
  'ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn',
  'cudaGraphLaunch',
];
const nameOf = (text: string) => names.indexOf(text);

/**
 * Random events in all combinations: two processes with their own threads; ranges that nest (also in their own kind), overlap, stay open
 * or belong to the process; calls across their ends; repeated ids; two devices and streams that overlap and start
 * together; graphs; orphans.
 */
function randomCapture(seed: number): Capture {
  let state = seed;
  const below = (n: number) => (state = (state * 48271) % 2147483647) % n;
  const pick = <T>(values: readonly T[]): T => values[below(values.length)]!;
  const ranges: Row[] = [];
  for (let i = 0; i < 120; i++) {
    const start_ns = below(9_000);
    const length = pick([5, 80, 400, 2_500]);
    ranges.push({
      range_id: i,
      start_ns,
      end_ns: below(30) === 0 ? Number.NaN : start_ns + below(length),
      pid: pick([7, 8]),
      tid: pick([1, 1, 2]),
      rank: 0,
      name: nameOf(pick(['prefill', 'decode', 'decode', 'warmup', 'layer', 'layer', ...names.slice(12)])),
      process_wide: Number(below(12) === 0),
    });
  }
  for (const range of ranges) range['rank'] = range['pid']! - 7;
  const calls: Row[] = [];
  for (let i = 0; i < 500; i++) {
    const pid = pick([7, 8]);
    calls.push({
      start_ns: below(10_000),
      dur_ns: below(pick([4, 60])),
      pid,
      // Thread 3 has no ranges.
      tid: pick([1, 1, 1, 2, 3]),
      rank: pid - 7,
      correlation: below(40) === 0 ? Number.NaN : below(15) === 0 ? i : i + 1,
      name: nameOf(
        pick(['cudaStreamSynchronize', 'cudaGraphLaunch', ...Array<string>(8).fill('cudaLaunchKernel')]),
      ),
      api: nameOf('runtime'),
    });
  }
  const kernels: Row[] = [];
  const copies: Row[] = [];
  // Sequences of activities with occasional overlap.
  const clock = [0, 0, 0];
  for (const call of calls) {
    if (call['name'] === nameOf('cudaStreamSynchronize')) continue;
    const isGraphLaunch = call['name'] === nameOf('cudaGraphLaunch');
    const graph = isGraphLaunch || below(12) === 0;
    const device = call['pid'] === 7 ? pick([0, 0, 0, 1]) : 2;
    for (let node = graph ? 4 : 1; node > 0; node--) {
      const start_ns = Math.max(0, clock[device]! + pick([0, 0, 3, 20, 20, 20, 20, 90, -4, -15, -40]));
      const dur_ns = below(pick([1, 20, 20, 60]));
      clock[device] = Math.max(clock[device]!, start_ns + dur_ns);
      const activity = {
        start_ns,
        dur_ns,
        pid: call['pid']!,
        rank: call['rank']!,
        device,
        context: 1,
        stream: pick([7, 7, 7, 13]),
        correlation: below(25) === 0 ? 9_000 + node : call['correlation']!,
        // Not every profiler numbers the nodes of a graph.
        graph_node: graph && !(isGraphLaunch && below(2) === 0) ? node : Number.NaN,
        op_id: Number.NaN,
      };
      if (below(6) === 0)
        copies.push({
          ...activity,
          bytes: 64,
          kind: nameOf('HtoD'),
          src_kind: nameOf('pinned'),
          dst_kind: nameOf('device'),
        });
      else
        kernels.push({
          ...activity,
          name: nameOf(pick(names.slice(7, 9))),
          short_name: nameOf('layer'),
          grid: Number.NaN,
          block: Number.NaN,
          registers: 32,
          shared_mem_bytes: 0,
          graph_id: graph ? 1 : Number.NaN,
          opaque_graph: Number(below(50) === 0),
        });
    }
  }
  // In the order of profilers: rows that start together stay in file order.
  const byStart = (rows: Row[]) => rows.toSorted((a, b) => a['start_ns']! - b['start_ns']!);
  return {
    trace_ranges: ranges,
    trace_api: byStart(calls),
    trace_kernels: byStart(kernels),
    trace_copies: byStart(copies),
  };
}

/** A generating program that marks only a warm-up without work: two processes, each with a prompt and decode steps. */
function unmarkedGeneration(seed: number): Capture {
  let state = seed;
  const below = (n: number) => (state = (state * 48271) % 2147483647) % n;
  const capture: Capture = { trace_ranges: [], trace_api: [], trace_kernels: [], trace_copies: [] };
  for (const pid of [7, 8]) {
    const common = { pid, rank: pid - 7 };
    const warmUp = {
      range_id: pid,
      start_ns: 0,
      end_ns: 500,
      tid: 1,
      name: nameOf('warmup'),
      process_wide: 0,
    };
    capture.trace_ranges.push({ ...common, ...warmUp });
    let host = 1_000;
    let device = 1_000;
    let id = 1;
    const launch = (name: string, tokens: number, takes: number) => {
      host += 10 + below(5);
      device = Math.max(device, host + 3) + below(3);
      const correlation = id++;
      const call = {
        start_ns: host,
        dur_ns: 2 + below(3),
        tid: 1,
        correlation,
        name: nameOf('cudaLaunchKernel'),
      };
      capture.trace_api.push({ ...common, ...call, api: nameOf('runtime') });
      capture.trace_kernels.push({
        ...common,
        start_ns: device,
        dur_ns: takes,
        device: pid - 7,
        context: 1,
        stream: below(2),
        correlation,
        graph_node: Number.NaN,
        graph_id: Number.NaN,
        op_id: Number.NaN,
        name: nameOf(name),
        short_name: nameOf('layer'),
        grid: nameOf(`${tokens},1,1`),
        block: Number.NaN,
        registers: 32,
        shared_mem_bytes: 0,
        opaque_graph: 0,
      });
      device += takes;
    };
    const [embedding, attention, sampling, norm, , , gemm] = names.slice(16) as [string, ...string[]];
    for (let pass = 0; pass < 7; pass++) {
      const tokens = pass === 0 ? 64 : 1;
      launch(embedding, tokens, 2);
      for (let layer = 0; layer < 3; layer++) {
        launch(norm!, tokens, 2);
        for (let i = 0; i < 3; i++) launch(gemm!, tokens, 5 * (pass === 0 ? 6 : 1));
        launch(attention!, tokens, 4);
      }
      launch(sampling!, 1, 3);
    }
  }
  const byStart = (rows: Row[]) => rows.toSorted((a, b) => a['start_ns']! - b['start_ns']!);
  capture.trace_api = byStart(capture.trace_api);
  capture.trace_kernels = byStart(capture.trace_kernels);
  return capture;
}

async function fillTables(workbench: Workbench, capture: Capture): Promise<void> {
  const writers = await createTraceTables(workbench);
  for (const [table, rows] of Object.entries(capture) as [TraceTable, Row[]][]) {
    const columns = traceTables[table].map((name) => [
      name,
      Float64Array.from(rows, (row) => row[name] ?? Number.NaN),
    ]);
    writers[table].append(Object.fromEntries(columns), rows.length);
  }
  for (const writer of Object.values(writers)) writer.close();
  await workbench.createNames('trace_names', names);
}

/** Each row is a combination, except rows that are equal in all of `columns`. */
function combined(rows: readonly Row[], columns: readonly string[]) {
  const codes = new Map<string, number>();
  const firsts: Row[] = [];
  const shape = Int32Array.from(rows, (row) => {
    const key = columns.map((name) => row[name]).join(',');
    if (!codes.has(key)) codes.set(key, firsts.push(row) - 1);
    return codes.get(key)!;
  });
  const shapes = Object.fromEntries(
    columns.map((name) => [name, Float64Array.from(firsts, (row) => row[name] ?? Number.NaN)]),
  );
  return { shape, shapes };
}

function eventsOf(
  table: 'trace_api' | 'trace_kernels' | 'trace_copies',
  rows: readonly Row[],
): InMemoryEvents {
  const rowColumns = new Set(['start_ns', 'dur_ns', 'correlation', 'bytes']);
  const { shape, shapes } = combined(
    rows,
    traceTables[table].filter((name) => !rowColumns.has(name)),
  );
  const arrays = eventArrays(rows.length, table === 'trace_copies');
  arrays.shape.set(shape);
  rows.forEach((row, i) => {
    arrays.start_ns[i] = row['start_ns']!;
    arrays.dur_ns[i] = row['dur_ns']!;
    arrays.correlation[i] = row['correlation']!;
    if (arrays.bytes) arrays.bytes[i] = row['bytes']!;
  });
  return sortedEvents(arrays, rows.length, false, shapes);
}

function inMemory(capture: Capture): InMemoryTrace {
  const rows = capture.trace_ranges;
  const ranges: InMemoryRanges = {
    rows: rows.length,
    start_ns: Float64Array.from(rows, (row) => row['start_ns']!),
    end_ns: Float64Array.from(rows, (row) => row['end_ns']!),
    ...combined(rows, ['pid', 'tid', 'rank', 'name', 'process_wide']),
  };
  return {
    ranges,
    calls: eventsOf('trace_api', capture.trace_api),
    kernels: eventsOf('trace_kernels', capture.trace_kernels),
    copies: eventsOf('trace_copies', capture.trace_copies),
  };
}

test('for any overlap, events in memory are attributed like those in tables', async () => {
  const seeds = [1, 300];
  const issues: Record<string, Issue[]> = {};
  const { database } = await importWith(async ({ workbench }, context) => {
    for (const seed of seeds) {
      const capture = randomCapture(seed);
      await fillTables(workbench, capture);
      issues[`tables ${seed}`] = (
        await attribute(workbench, { ...context, capture_id: `tables-${seed}` })
      ).issues;
      await dropTraceTables(workbench);
      await workbench.createNames('trace_names', names);
      issues[`memory ${seed}`] = (
        await attribute(workbench, { ...context, capture_id: `memory-${seed}` }, inMemory(capture))
      ).issues;
      await dropTraceTables(workbench);
    }
    return { issues: [] };
  });
  for (const seed of seeds) {
    expect(issues[`memory ${seed}`]).toEqual(issues[`tables ${seed}`]);
    expect(issues[`memory ${seed}`]!.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['ranges_overlapping', 'calls_clipped', 'orphans', 'correlation_shared']),
    );
    for (const table of ['kernels', 'copies', 'api_calls', 'stages', 'gaps']) {
      const tableRows = (path: string) =>
        database.query(
          `SELECT * EXCLUDE (capture_id) FROM ${table} WHERE capture_id = '${path}-${seed}' ORDER BY ALL`,
        );
      const rows = await tableRows('memory');
      expect(rows.length).toBeGreaterThan(10);
      expect(rows).toEqual(await tableRows('tables'));
    }
    const [unnamed] = await database.query<{ n: number }>(
      `SELECT count(*) AS n FROM kernels WHERE capture_id = 'memory-${seed}' AND graph_node = 0`,
    );
    expect(unnamed!.n).toBeGreaterThan(5);
  }
  await database.close();
});

test('unmarked steps are inferred equally from events in memory and in tables', async () => {
  const capture = unmarkedGeneration(11);
  const issues: Issue[][] = [];
  const { database } = await importWith(async ({ workbench }, context) => {
    await fillTables(workbench, capture);
    issues.push((await attribute(workbench, { ...context, capture_id: 'tables' })).issues);
    await dropTraceTables(workbench);
    await workbench.createNames('trace_names', names);
    issues.push((await attribute(workbench, { ...context, capture_id: 'memory' }, inMemory(capture))).issues);
    await dropTraceTables(workbench);
    return { issues: [] };
  });
  expect(issues[1]).toEqual(issues[0]);
  expect(issues[0]!.find(({ code }) => code === 'steps_inferred')!.text).toContain('2 prefill, 12 decode');
  for (const table of ['kernels', 'api_calls', 'stages', 'gaps']) {
    const tableRows = (path: string) =>
      database.query(`SELECT * EXCLUDE (capture_id) FROM ${table} WHERE capture_id = '${path}' ORDER BY ALL`);
    expect(await tableRows('memory')).toEqual(await tableRows('tables'));
  }
  const steps = await database.query<{ n: number }>(
    `SELECT pid, kind, batch_size, new_tokens, confidence, count(*) AS n, sum(kernels) AS kernels FROM stages
     JOIN (SELECT stage_id, count(*) AS kernels FROM kernels WHERE capture_id = 'memory' GROUP BY stage_id) USING (stage_id)
     WHERE capture_id = 'memory' GROUP BY ALL ORDER BY pid, kind DESC`,
  );
  const sized = { batch_size: null, confidence: 1, kernels: 17 };
  expect(steps).toEqual(
    [7, 8].flatMap((pid) => [
      { ...sized, pid, kind: 'prefill', new_tokens: 64, n: 1 },
      { ...sized, pid, kind: 'decode', new_tokens: 1, batch_size: 1, n: 6, kernels: 6 * 17 },
    ]),
  );
  await database.close();
});
