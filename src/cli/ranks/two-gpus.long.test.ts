import Database from 'libsql';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { runImport } from '../import-run.js';
import { importPart } from './import-part.js';
import { importRanks } from './import-ranks.js';

const captures = 'test/fixtures/nccl-2h100';
afterEach(() => vi.unstubAllEnvs());

/** Bus bandwidth of rank 0 without a profiler, as defined by nccl-tests (doc/PERFORMANCE.md): with 2 ranks, 1 or half of all bytes. */
const timed = JSON.parse(readFileSync(join(captures, 'times.json'), 'utf8')) as {
  op: string;
  elements: number;
  ms: number;
}[];
const busBandwidthOf = (op: string, elements: number, factor: number) =>
  (factor * 2 * elements) / (timed.find((row) => row.op === op && row.elements === elements)!.ms / 1e3);

test.each(['json.gz', 'sqlite'])(
  'two H100, ranks of *.%s: sizes of all calls, and bus bandwidths as timed without a profiler',
  async (ending) => {
    const folder = testFolder();
    vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
    mkdirSync(join(folder, 'ranks'));
    for (const rank of [0, 1])
      copyFileSync(join(captures, `rank${rank}.${ending}`), join(folder, 'ranks', `rank${rank}.${ending}`));
    const options = { tag: [], raw: false, quiet: true, jobs: 2 };
    const id = await importRanks([join(folder, 'ranks')], options, new AbortController().signal, importPart);
    const session = await openSession(id);
    const database = await session.connect();
    const calls = await database.query(
      `SELECT operation, bytes, count(*) AS n FROM collectives WHERE bytes > 4 AND ranks = 2 GROUP BY ALL ORDER BY ALL`,
    );
    await database.close();
    // Six calls of each size on each rank: 2 ** 20, 2 ** 23 and 2 ** 26 elements of 2 bytes; ReduceScatter counts the bytes that one rank
    // receives.
    const sizes = (bytes: number) => [2 ** 20, 2 ** 23, 2 ** 26].map((elements) => elements * bytes);
    expect(calls).toEqual(
      (
        [
          ['AllGather', 2],
          ['AllReduce', 2],
          ['AllToAll', 2],
          ['Broadcast', 2],
          ['ReduceScatter', 1],
        ] as const
      ).flatMap(([operation, bytes]) => sizes(bytes).map((size) => ({ operation, bytes: size, n: 12 }))),
    );
    const { data } = await analyzeCollectives(session);
    const bus = (operation: string, bytes: number) =>
      data.groups.find((group) => group.operation === operation && group.bytes === bytes)!.bus_bandwidth
        .value!;
    const large = 2 ** 26;
    for (const [operation, bytes, expected] of [
      ['AllGather', 2 * large, busBandwidthOf('all_gather', large, 1)],
      ['ReduceScatter', large, busBandwidthOf('reduce_scatter', large, 0.5)],
      ['Broadcast', 2 * large, busBandwidthOf('broadcast', large, 1)],
    ] as const)
      expect(bus(operation, bytes) / expected, operation).toBeCloseTo(1, 1);
  },
  60_000,
);

const ncclTests = 'test/fixtures/nccl-tests-2h200';
const figures = JSON.parse(readFileSync(join(ncclTests, 'figures.json'), 'utf8')) as Record<string, number[]>;

/** Imports the two ranks of one program of nccl-tests. */
async function importNcclTests(name: string, ranks = [0, 1]) {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  mkdirSync(join(folder, 'ranks'));
  for (const rank of ranks)
    copyFileSync(join(ncclTests, `${name}-rank${rank}.sqlite`), join(folder, 'ranks', `rank${rank}.sqlite`));
  const options = { tag: [], raw: false, quiet: true, jobs: 2 };
  return openSession(
    await importRanks([join(folder, 'ranks')], options, new AbortController().signal, importPart),
  );
}

test.each([
  ['all-reduce', 'AllReduce', 2 ** 26],
  ['all-gather', 'AllGather', 2 ** 25],
  ['sendrecv', 'Send and Recv', 2 ** 26],
])('the bus bandwidth of %s is within 3 %% of what nccl-tests prints', async (name, operation, bytes) => {
  const { data } = await analyzeCollectives(await importNcclTests(name));
  const group = data.groups.find((row) => row.operation === operation && row.bytes === bytes)!;
  const [outOfPlace, inPlace] = figures[name]!;
  const printed = (outOfPlace! + inPlace!) / 2;
  expect(group.bus_bandwidth.value! / 1e9 / printed).toBeGreaterThan(0.97);
  expect(group.bus_bandwidth.value! / 1e9 / printed).toBeLessThan(1.03);
});

test('a kernel that sends and receives has a call for each, which share its time', async () => {
  const session = await importNcclTests('sendrecv');
  const { job } = (await analyzeCollectives(session)).data;
  // 47 calls of 64, 8 and 1 MiB, and 5 of the sizes that only warm up.
  const bytes = 2 ** 20 * (47 * (64 + 8 + 1) + 5 * (128 + 32 + 16 + 4 + 2));
  expect(job!.transfers).toMatchObject([
    { sender: 0, receiver: 1, transfers: 166, bytes },
    { sender: 1, receiver: 0, transfers: 166, bytes },
  ]);
  const database = await session.connect();
  const [kernels] = await database.query<{ ms: number }>(
    'SELECT sum(dur_ns) / 1e6 AS ms FROM kernels GROUP BY rank ORDER BY rank',
  );
  await database.close();
  const [rank0] = job!.ranks;
  expect(rank0!.wire_ms! + rank0!.skew_ms!).toBeCloseTo(kernels!.ms, 3);
  expect(rank0!.exposed_ms! + rank0!.overlapped_ms!).toBeCloseTo(kernels!.ms, 3);
});

/** The report of one rank with the rows of the other one: the same process drives both GPUs from two threads, as it was recorded. */
function joinReports(name: string, path: string): void {
  copyFileSync(join(ncclTests, `${name}-rank0.sqlite`), path);
  const database = new Database(path);
  database.exec(`ATTACH '${join(ncclTests, `${name}-rank1.sqlite`)}' AS other`);
  for (const [table, column] of [
    ['CUPTI_ACTIVITY_KIND_KERNEL', 'globalPid'],
    ['CUPTI_ACTIVITY_KIND_RUNTIME', 'globalTid'],
    ['NVTX_EVENTS', 'globalTid'],
  ] as const) {
    const names = database
      .prepare(`PRAGMA table_info(${table})`)
      .all()
      .map((row) => (row as { name: string }).name);
    const values = names.map((value) => (value === column ? `${column} - 16777216` : `"${value}"`));
    database.exec(`INSERT INTO ${table} SELECT ${values.join(', ')} FROM other.${table}`);
  }
  database.exec('INSERT OR IGNORE INTO StringIds SELECT * FROM other.StringIds');
  database.close();
}

/**
 * Rewrites the report of two threads as that of one that drives both GPUs, as `sendrecv_perf -t 1 -g 2` does: in an outer group it makes the group
 * of each GPU, and launches both kernels at the end.
 */
function asOneThread(path: string): void {
  const database = new Database(path);
  const rowsOf = (sql: string, thread: bigint) =>
    database.prepare(sql).safeIntegers(true).all(thread) as { rowid: bigint; start: bigint; end: bigint }[];
  const [first, second] = database
    .prepare('SELECT DISTINCT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY 1')
    .safeIntegers(true)
    .pluck()
    .all() as [bigint, bigint];
  const rangesSql = (name: string) =>
    `SELECT n.rowid, n.start, n.end FROM NVTX_EVENTS n JOIN StringIds ON id = textId WHERE value = '${name}' AND globalTid = ?
     AND n.start > (SELECT min(c.start) FROM NVTX_EVENTS c JOIN StringIds ON id = c.textId WHERE value = 'ncclCommCount') ORDER BY n.start`;
  const launchesSql =
    'SELECT rowid, start, "end" FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE globalTid = ? ORDER BY start';
  const move = (table: string, rowid: bigint, start: bigint, end: bigint) =>
    database
      .prepare(`UPDATE ${table} SET globalTid = ?, start = ?, "end" = ? WHERE rowid = ?`)
      .run(first, start, end, rowid);
  const copyRange = (rowid: bigint, start: bigint, end: bigint) =>
    database
      .prepare(
        `INSERT INTO NVTX_EVENTS (start, "end", eventType, globalTid, domainId, textId) SELECT ?, ?, eventType, ?, domainId, textId FROM NVTX_EVENTS WHERE rowid = ?`,
      )
      .run(start, end, first, rowid);
  database.exec('BEGIN');
  const ends = rowsOf(rangesSql('ncclGroupEnd'), first);
  const starts = rowsOf(rangesSql('ncclGroupStart'), first);
  for (const [index, { rowid, start, end }] of ends.entries()) {
    copyRange(rowid, start, end);
    copyRange(starts[index]!.rowid, starts[index]!.start - 2n, starts[index]!.start - 1n);
    move('NVTX_EVENTS', rowid, start - 6n, start - 5n);
  }
  for (const [place, name] of ['ncclGroupStart', 'ncclSend', 'ncclRecv', 'ncclGroupEnd'].entries()) {
    for (const [index, { rowid }] of rowsOf(rangesSql(name), second).entries()) {
      const start = ends[index]!.start - 4n + BigInt(place);
      move('NVTX_EVENTS', rowid, start, start);
    }
  }
  const launches = rowsOf(launchesSql, first);
  for (const [index, { rowid }] of rowsOf(launchesSql, second).entries())
    move('CUPTI_ACTIVITY_KIND_RUNTIME', rowid, launches[index]!.start + 1n, launches[index]!.end + 1n);
  database.exec('COMMIT');
  database.close();
}

test('a thread that drives two GPUs: sends and receives are of one GPU each', async () => {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const path = join(folder, 'thread.sqlite');
  joinReports('sendrecv', path);
  asOneThread(path);
  const options = { tag: [], raw: false, quiet: true };
  const { calls } = await callsOf(await runImport([path], options, new AbortController().signal));
  expect(calls).toEqual((await callsOf((await importNcclTests('sendrecv')).manifest.id)).calls);
});

test.each([
  ['all-reduce', 'AllReduce', 2 ** 26],
  ['all-gather', 'AllGather', 2 ** 25],
  ['sendrecv', 'Send and Recv', 2 ** 26],
])('a process that drives two GPUs has a rank per GPU: %s', async (name, operation, bytes) => {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const path = join(folder, 'threads.sqlite');
  joinReports(name, path);
  const options = { tag: [], raw: false, quiet: true };
  const { session, calls } = await callsOf(await runImport([path], options, new AbortController().signal));
  const joined = await callsOf((await importNcclTests(name)).manifest.id);
  expect(calls).toEqual(joined.calls);
  const { data } = await analyzeCollectives(session);
  const group = data.groups.find((row) => row.operation === operation && row.bytes === bytes)!;
  const [outOfPlace, inPlace] = figures[name]!;
  const printed = (outOfPlace! + inPlace!) / 2;
  expect(Math.abs(group.bus_bandwidth.value! / 1e9 / printed - 1)).toBeLessThan(0.03);
  expect(data.job).toMatchObject({ world_size: 2, missing: [], ranks: [{ rank: 0 }, { rank: 1 }] });
  const { stages } = (await explainSession(session, { rank: 1 })).data;
  expect(stages[0]!.bars.map(({ id }) => id)).toContain('exposed_comm.wire');
});

test('a thread that drives two GPUs: the calls of a group are of one GPU each', async () => {
  vi.stubEnv('INFERSCOPE_HOME', join(testFolder(), 'home'));
  const path = join(ncclTests, 'all-reduce-one-thread.sqlite');
  const options = { tag: [], raw: false, quiet: true };
  const { session, calls } = await callsOf(await runImport([path], options, new AbortController().signal));
  // As many calls of each size as kernels of each GPU.
  expect(
    calls.filter(({ bytes }) => bytes === 2 ** 26).map(({ rank, device, ranks }) => [rank, device, ranks]),
  ).toEqual([0, 1].flatMap((rank) => Array.from({ length: 47 }, () => [rank, rank, 2])));
  const { data } = await analyzeCollectives(session);
  const group = data.groups.find(({ bytes }) => bytes === 2 ** 26)!;
  const [outOfPlace, inPlace] = figures['all-reduce']!;
  expect(
    Math.abs(group.transfer_bus_bandwidth.value! / 1e9 / ((outOfPlace! + inPlace!) / 2) - 1),
  ).toBeLessThan(0.05);
});

const columns =
  'rank, communicator, ranks, operation, sequence, bytes, received_bytes, dur_ns, exposed_ns, device';

async function callsOf(id: string) {
  const session = await openSession(id);
  const database = await session.connect();
  const calls = await database.query(`SELECT ${columns} FROM collectives ORDER BY ALL`);
  await database.close();
  return { session, calls };
}

test('nsys reports of two ranks, imported together or alone, have the ranks of their names', async () => {
  vi.stubEnv('INFERSCOPE_HOME', join(testFolder(), 'home'));
  const files = [0, 1].map((rank) => join(captures, `rank${rank}.sqlite`));
  const options = { tag: [], raw: false, quiet: true };
  const { signal } = new AbortController();
  const places = async (paths: string[]) => {
    const session = await openSession(await runImport(paths, options, signal));
    const database = await session.connect();
    const rows = await database.query('SELECT DISTINCT rank, device FROM kernels ORDER BY ALL');
    await database.close();
    return rows;
  };
  expect(await places(files)).toEqual([
    { rank: 0, device: 0 },
    { rank: 1, device: 1 },
  ]);
  expect(await places(files.slice(1))).toEqual([{ rank: 1, device: 1 }]);
});

test('traces of the processes of one execution have the calls and the rank table of import --ranks', async () => {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const files = [0, 1].map((rank) => join(captures, `rank${rank}.json.gz`));
  const options = { tag: [], raw: false, quiet: true };
  const { signal } = new AbortController();
  const joined = await callsOf(await importRanks(files, options, signal, importPart));
  const { session, calls } = await callsOf(await runImport(files, options, signal));
  expect(calls.length).toBeGreaterThan(100);
  expect(calls).toEqual(joined.calls);
  const { job } = (await analyzeCollectives(session)).data;
  expect(job).toMatchObject({ world_size: 2, missing: [], ranks: [{ rank: 0 }, { rank: 1 }] });
  const alone = await callsOf(await runImport(files.slice(0, 1), options, signal));
  expect(alone.calls).toEqual([]);
  expect((await analyzeCollectives(alone.session)).data.job).toBeNull();
});

test('processes of one run, in one nsys report, are the ranks of a job', async () => {
  vi.stubEnv('INFERSCOPE_HOME', join(testFolder(), 'home'));
  const options = { tag: [], raw: false, quiet: true };
  const file = 'test/fixtures/below-2h100/torchrun.sqlite';
  const { session, calls } = await callsOf(await runImport([file], options, new AbortController().signal));
  const large = calls.filter(({ bytes }) => bytes === 8 * 1024 * 2048 * 2);
  // 8 layers, 12 steps.
  expect(large.map(({ rank, operation, ranks }) => [rank, operation, ranks])).toEqual(
    [0, 1].flatMap((rank) => Array.from({ length: 96 }, () => [rank, 'AllReduce', 2])),
  );
  const { job, groups } = (await analyzeCollectives(session)).data;
  // Rank 1 computes each layer four times as often.
  expect(job).toMatchObject({
    world_size: 2,
    step_kind: 'prefill',
    ranks: [{ late_cause: null }, { late_cause: 'compute' }],
  });
  const [, slow] = job!.ranks;
  expect(slow!.delayed_operations / slow!.operations).toBeGreaterThan(0.9);
  const group = groups.find(({ bytes }) => bytes === 8 * 1024 * 2048 * 2)!;
  expect(group.sums!.wire_ns + group.sums!.skew_ns).toBe(group.sums!.time_ns);
});
