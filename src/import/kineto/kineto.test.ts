import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { build } from 'tsdown';
import { describe, expect, test } from 'vitest';
import { testFolder } from '../../session/test-folder.js';
import { readTrace, writeTrace, fillTables, fixtures, kernelJson, tinyTrace } from './test-trace.js';

interface Average {
  key: string;
  count: number;
  self_device_time_us: number;
  self_cpu_time_us: number;
  cpu_time_us: number;
  device_type: string;
}
const readAverages = (name: string) =>
  JSON.parse(readFileSync(join(fixtures, `${name}.key_averages.json`), 'utf8')) as Average[];

const byName = (table: string) =>
  `SELECT text AS key, count(*)::INTEGER AS count, sum(dur_ns)::DOUBLE AS ns FROM ${table} JOIN trace_names ON code = name GROUP BY ALL`;
const sorted = (rows: (string | number)[][]) => rows.sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1));

describe.each(['kineto-tiny', 'kineto-tiny-stack'])('%s against key_averages()', (name) => {
  const torch = readAverages(name);

  test('kernels: count and device time of every name, to the nanosecond', async () => {
    const { query } = await fillTables(join(fixtures, `${name}.json.gz`));
    const kernels = await query<{ key: string; count: number; ns: number }>(byName('trace_kernels'));
    const expected = torch
      .filter((row) => row.device_type !== 'DeviceType.CPU' && !/^Mem(cpy|set)|^inferscope:/.test(row.key))
      .map((row) => [row.key, row.count, Math.round(row.self_device_time_us * 1000)]);
    expect(expected.length).toBeGreaterThan(10);
    expect(sorted(kernels.map((row) => [row.key, row.count, row.ns]))).toEqual(sorted(expected));

    const copies = await query<{ kind: string; count: number; ns: number }>(
      `SELECT text AS kind, count(*)::INTEGER AS count, sum(dur_ns)::DOUBLE AS ns FROM trace_copies JOIN trace_names ON code = kind GROUP BY ALL`,
    );
    for (const { kind, count, ns } of copies) {
      const rows = torch.filter(({ key }) =>
        kind === 'memset' ? key.startsWith('Memset') : key.startsWith(`Memcpy ${kind}`),
      );
      expect([kind, count, ns]).toEqual([
        kind,
        rows.reduce((sum, row) => sum + row.count, 0),
        Math.round(rows.reduce((sum, row) => sum + row.self_device_time_us * 1000, 0)),
      ]);
    }
  });

  test('operators: count and total CPU time of every name', async () => {
    const { query } = await fillTables(join(fixtures, `${name}.json.gz`));
    const operators = await query<{ key: string; count: number; ns: number }>(
      byName(
        `(SELECT o.* FROM trace_ops o JOIN trace_names t ON t.code = o.op_type WHERE t.text = 'cpu_op')`,
      ),
    );
    const expected = torch
      .filter((row) => row.device_type === 'DeviceType.CPU' && row.key.startsWith('aten::'))
      .map((row) => [row.key, row.count, Math.round(row.cpu_time_us * 1000)]);
    expect(expected.length).toBeGreaterThan(20);
    const rows = sorted(
      operators.filter(({ key }) => key.startsWith('aten::')).map((r) => [r.key, r.count, r.ns]),
    );
    expect(rows).toEqual(sorted(expected));
  });
});

test('a complete event: time from text, shapes, launch and the operator that launched it', async () => {
  // baseTimeNanoseconds of the fixture; the kernel has ts 4379921106073.345.
  const zero = 1790857026000000000n + 4379921106000000n;
  const { query, facts } = await fillTables(tinyTrace, {}, zero);
  const [kernel] =
    await query(`SELECT k.start_ns, k.dur_ns, device, context, stream, correlation, registers, k.pid,
    s.text AS short, g.text AS grid, b.text AS block, o.text AS op, shapes.text AS shapes, types.text AS types
    FROM trace_kernels k JOIN trace_names s ON s.code = short_name JOIN trace_names g ON g.code = grid
    JOIN trace_names b ON b.code = block JOIN trace_ops p ON p.op_id = k.op_id JOIN trace_names o ON o.code = p.name
    JOIN trace_names shapes ON shapes.code = p.input_shapes JOIN trace_names types ON types.code = p.input_types
    WHERE correlation = 20`);
  expect(kernel).toEqual({
    start_ns: Number(BigInt('1790857026000000000') + 4379921106073345n - zero),
    dur_ns: 1568,
    device: 0,
    context: 1,
    stream: 7,
    correlation: 20,
    registers: 32,
    pid: 869,
    short: 'vectorized_gather_kernel',
    grid: '64,1,1',
    block: '64,1,1',
    op: 'aten::gather',
    shapes: '[[4096,512],[],[64,512],[],[64,512]]',
    types: '["c10::Half","Scalar","long int","Scalar","c10::Half"]',
  });
  expect(facts.hardware).toMatchObject({ gpu_name: 'NVIDIA H200', gpu_sm_count: 132 });
  const [pinnedCopies] =
    await query(`SELECT count(*)::INTEGER AS n FROM trace_copies c JOIN trace_names k ON k.code = kind
    JOIN trace_names s ON s.code = src_kind JOIN trace_names d ON d.code = dst_kind
    WHERE k.text = 'HtoD' AND s.text = 'pinned' AND d.text = 'device'`);
  expect(pinnedCopies).toEqual({ n: 1 });
  // gpu_user_annotation is not work: only host ranges count.
  expect(await query('SELECT count(*)::INTEGER AS n FROM trace_ranges')).toEqual([{ n: 7 }]);
});

test('device memory belongs to the innermost operator around each allocation', async () => {
  const { query } = await fillTables(tinyTrace);
  const [total] = await query<{ bytes: number }>(
    'SELECT sum(allocated_bytes) AS bytes FROM trace_ops WHERE NOT isnan(allocated_bytes)',
  );
  const traceEvents = readTrace(tinyTrace).traceEvents;
  const ops = traceEvents.filter(({ cat }) => cat === 'cpu_op') as { ts: number; dur: number; tid: number }[];
  const allocations = traceEvents
    .filter(({ cat }) => cat === 'cpu_instant_event')
    .map((event) => event as { ts: number; tid: number; args: Record<string, number> })
    .filter(({ args }) => args['Device Type'] === 1 && args['Bytes']! > 0)
    .filter(({ ts, tid }) => ops.some((op) => op.tid === tid && op.ts <= ts && ts < op.ts + op.dur));
  expect(total!.bytes).toBe(allocations.reduce((sum, { args }) => sum + args['Bytes']!, 0));
});

test('workers produce the same rows as one thread, also for a trace that cannot be split', async () => {
  const outDir = testFolder();
  await build({
    config: false,
    entry: { worker: 'src/import/kineto/worker.ts' },
    outDir,
    format: 'esm',
    platform: 'node',
    dts: false,
    clean: false,
    logLevel: 'silent',
    outExtensions: () => ({ js: '.mjs' }),
  });
  const workerEntry = join(outDir, 'worker.mjs');
  const { traceEvents, ...rest } = readTrace(tinyTrace);
  const repeatedEvents = Array.from({ length: 8 }, () => traceEvents).flat();
  const nestedEvents = repeatedEvents.map((event) => ({
    args: { steps: [{ a: 1 }, { ph: 'X' }] },
    ...event,
  }));
  for (const repeated of [repeatedEvents, nestedEvents]) {
    const path = writeTrace(JSON.stringify({ ...rest, traceEvents: repeated }, null, 1));
    const summary = `SELECT (SELECT count(*) FROM trace_ops) AS ops, (SELECT sum(start_ns) FROM trace_api) AS api,
      (SELECT sum(dur_ns) FROM trace_kernels) AS kernels, (SELECT sum(hash(text)) FROM trace_ops JOIN trace_names ON code = name)::VARCHAR AS names`;
    const oneThread = await (await fillTables(path, { threads: 1 })).query(summary);
    expect(await (await fillTables(path, { threads: 2, workerEntry })).query(summary)).toEqual(oneThread);
  }
});

test('old files: absolute µs, metadata after the events, texts as pids, integers past 2^53, duplicate keys', async () => {
  const path = writeTrace(`{"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "Trace", "ts": 1694039968955743.001, "dur": 9, "pid": "Spans", "tid": "PyTorch Profiler", "name": "p"},
    {"ph": "X", "cat": "Kernel", "name": "a", "name": "b", "pid": 3, "tid": 7, "ts": 1694039968955744.519, "dur": 1.25,
     "args": {"correlation": 10159970886766084423, "x": [[[{"y": "]}"}]]]}},
    {"ph": "X", "cat": "overhead", "pid": -1, "tid": 0, "ts": 1694039968955744, "dur": 1, "name": "o"}
  ], "distributedInfo": {"rank": 5}}`);
  const { query, facts } = await fillTables(path);
  expect(facts.realtime_zero_ns).toBe(1694039968955743000n);
  expect(
    await query(
      `SELECT start_ns, dur_ns, device, stream, rank, isnan(correlation) AS huge, text FROM trace_kernels JOIN trace_names ON code = name`,
    ),
  ).toEqual([{ start_ns: 1519, dur_ns: 1250, device: 3, stream: 7, rank: 5, huge: true, text: 'b' }]);
});

test('takes no rank from the distributedInfo that Kineto makes from the first collective', async () => {
  const derived = `"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2, "pg_count": 1, "pg_config": [{"pg_name": "0"}], "nccl_version": "unknown"}`;
  const events = `"traceEvents": [${kernelJson('')}]`;
  const ranksOf = async (text: string) => {
    const { query, facts } = await fillTables(writeTrace(`{${text}}`));
    const [kernel] = await query<{ rank: number }>('SELECT rank FROM trace_kernels');
    return [facts.rank, kernel!.rank];
  };
  expect(await ranksOf(`${events}, ${derived}`)).toEqual([undefined, 0]);
  expect(await ranksOf(`${derived}, ${events}`)).toEqual([undefined, 0]);
  expect(await ranksOf(`"inferscope_rank": 5, ${events}, ${derived}`)).toEqual([5, 5]);
  expect(await ranksOf(`${events}, ${derived.replace('unknown', '2.28.9')}`)).toEqual([1, 1]);
});

test('reads and counts control characters and unknown escapes, and skips a broken event', async () => {
  const good = kernelJson('').replace('"k"', '"k\\x1b \u0001<"');
  const { query, issues } = await fillTables(
    writeTrace(
      `{"traceEvents": [${good},\n{"ph": "X", "cat": "kernel", "name": "un"quoted"},\n${kernelJson('')}]}`,
    ),
  );
  expect(await query('SELECT text FROM trace_kernels JOIN trace_names ON code = name ORDER BY ALL')).toEqual([
    { text: 'k' },
    { text: 'k\\x1b \u0001<' },
  ]);
  expect(issues.map(({ code, count }) => [code, count])).toEqual(
    expect.arrayContaining([
      ['events_damaged', 1],
      ['texts_repaired', 1],
    ]),
  );
});

test('impossible times are dropped and counted', async () => {
  const far = kernelJson('').replace('1694039968955744.519', '1e300');
  const long = kernelJson('').replace('1.0005', '1e300');
  const { query, issues } = await fillTables(
    writeTrace(`{"traceEvents": [${kernelJson('')},\n${far},\n${long}]}`),
  );
  expect(await query('SELECT dur_ns FROM trace_kernels')).toEqual([{ dur_ns: 1001 }]);
  expect(issues.map(({ code, count }) => [code, count])).toContainEqual(['events_untimed', 2]);
});

const traceBytes = gunzipSync(readFileSync(tinyTrace));
test.each([
  ['empty', () => writeTrace(''), /empty/],
  ['not JSON', () => writeTrace('hello'), /not JSON/],
  ['JSON of another kind', () => writeTrace('{"a": [1]}'), /without traceEvents/],
  [
    'a trace of something else',
    () => writeTrace('{"traceEvents": [{"ph":"X","cat":"v8","ts":1,"dur":1,"name":"n"}]}'),
    /None of its events/,
  ],
  ['cut off', () => writeTrace(traceBytes.subarray(0, 1_000_000)), /cut off/],
  ['cut off between events', () => writeTrace(`{"traceEvents": [${kernelJson(',')}`), /cut off/],
  ['cut off gzip', () => writeTrace(readFileSync(tinyTrace).subarray(0, 100_000), 't.json.gz'), /cut off/],
  ['damaged gzip', () => writeTrace(gzipSync('x').fill(7, 10), 't.json.gz'), /gzip/],
  ['deep nesting', () => writeTrace(`{"traceEvents": [{"ph":"X","args":${'['.repeat(3e6)}`), /cut off/],
  ['absent', () => join(testFolder(), 'none.json'), /no such file/],
])('%s: E_TRACE_FILE with this reason', async (_name, makePath, why) => {
  const failure = await fillTables(makePath()).then(
    () => null,
    (error: unknown) => error as { code: string; parts: { why: string } },
  );
  expect(failure?.code).toBe('E_TRACE_FILE');
  expect(failure?.parts.why).toMatch(why);
});
