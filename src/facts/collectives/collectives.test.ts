import { beforeAll, expect, test } from 'vitest';
import { collectiveTraffic } from '../../model/collectives.js';
import { type CollectivesResult, collectivesDocumentSchema } from '../../model/documents/collectives.js';
import type { Row } from '../../model/tables.js';
import { leadOf } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../../advice/explain/explain.js';
import { sessionOf } from '../test-session.js';
import { fixture, imported } from '../trace/test-import.js';
import { readCallsByRank, readCollectiveKinds } from './calls-by-rank.js';
import { analyzeCollectives } from './collectives.js';

let session: Session;
let data: CollectivesResult;
beforeAll(async () => {
  session = await imported(testHome(), 'nccl-inspector', fixture('nccl-inspector-from-docs'));
  const document = collectivesDocumentSchema.parse(await analyzeCollectives(session));
  expect(document.issues.map(({ code }) => code)).not.toContain('collectives_bandwidth_differs');
  data = document.data;
});

const keys = { communicator: 'x', rank: 0, ranks: 2, nodes: 1, timed_by: 'kernel_gpu', bytes: 2 ** 20 };
const rows = (count: number, row: (nth: number) => Row<'collectives'>): Row<'collectives'>[] =>
  Array.from({ length: count }, (_, nth) => ({
    ...keys,
    sequence: nth,
    operation: 'AllReduce',
    ...row(nth),
  }));
const lateRankOutcome = async (faultOf: Session) =>
  (await explainSession(faultOf)).data.rules.find(({ rule }) => rule === 'collective_late_rank')!.outcome;

test('bandwidths equal the two records that NCCL publishes', () => {
  // plugins/profiler/inspector/README.md: 8 ranks; 41057 µs, 61974 µs.
  const scatter = collectiveTraffic('ReduceScatter', 2147483648, 8)!;
  expect(scatter.algorithm / 41057e-6 / 1e9).toBeCloseTo(418.439467, 5);
  expect(scatter.bus / 41057e-6 / 1e9).toBeCloseTo(366.134533, 5);
  const reduce = collectiveTraffic('AllReduce', 17179869184, 8)!;
  expect(reduce.algorithm / 61974e-6 / 1e9).toBeCloseTo(277.210914, 5);
  expect(reduce.bus / 61974e-6 / 1e9).toBeCloseTo(485.119099, 5);
  // doc/PERFORMANCE.md of nccl-tests: 2(n − 1)/n, (n − 1)/n of the whole, 1.
  expect([2, 4, 8].map((n) => collectiveTraffic('AllReduce', 1, n)!.bus)).toEqual([1, 1.5, 1.75]);
  expect(collectiveTraffic('AllGather', 100, 4)).toEqual({ algorithm: 400, bus: 300 });
  expect(collectiveTraffic('Broadcast', 100, 4)).toEqual({ algorithm: 100, bus: 100 });
  expect(collectiveTraffic('Invalid', 100, 4)).toBeNull();
});

test('a link that is not known is the one reason for all operations', () => {
  expect(data.groups.length).toBeGreaterThan(1);
  for (const { link_share: share } of data.groups)
    expect(share).toMatchObject({ value: null, reason: { code: 'unknown_gpu' } });
});

test('times, bandwidths and ranks by hand (ORIGIN.md of the fixture)', () => {
  expect(data.recorded).toBe(158);
  const [reduce, gather, receive, send] = data.groups;
  expect(reduce).toMatchObject({
    operation: 'AllReduce',
    bytes: 2 ** 26,
    ranks: 4,
    recorded: 120,
    complete: 30,
  });
  // 30 each of 400, 500, 520 and 540 µs.
  expect(reduce!.time_p50_ns.value).toBe(510_000);
  expect(reduce!.time_p99_ns.value).toBe(540_000);
  expect(reduce!.algorithm_bandwidth.value! / 1e9).toBeCloseTo(67.108864 / 0.51, 6);
  expect(reduce!.bus_bandwidth.value! / 1e9).toBeCloseTo((1.5 * 67.108864) / 0.51, 6);
  expect(reduce!.transfer_p50_ns.value).toBe(400_000);
  expect(reduce!.transfer_bus_bandwidth.value! / 1e9).toBeCloseTo((1.5 * 67.108864) / 0.4, 6);
  expect(reduce!.waiting_p50_ns.value).toBe(140_000);
  expect(reduce!.recorded_share.value).toBeCloseTo(30 / 33, 12);
  expect(reduce!.last).toMatchObject({ rank: 3, host: 'node-a', operations: 27, total_operations: 30 });
  expect(reduce!.longest).toMatchObject({ rank: 2, operations: 30, total_operations: 30 });
  // All ranks take equally long, so none was last.
  expect(gather).toMatchObject({
    operation: 'AllGather',
    recorded: 28,
    complete: 7,
    last: null,
    longest: null,
  });
  expect(gather!.bus_bandwidth.value! / 1e9).toBeCloseTo((3 * 1.048576) / 0.06, 6);
  expect([send!.operation, receive!.operation, send!.complete]).toEqual(['Send', 'Recv', 0]);
  expect(send!.bus_bandwidth.value! / 1e9).toBeCloseTo(8.388608 / 0.1, 6);
  expect(send!.roof_share).toMatchObject({ value: null, reason: { code: 'no_roofline' } });
  expect(
    data.communicators.map((communicator) => [
      communicator.operation,
      communicator.recorded_ranks,
      communicator.recorded,
    ]),
  ).toEqual([
    ['AllReduce', 4, 120],
    ['AllGather', 4, 28],
    ['Send and Recv', 2, 10],
  ]);
});

test('a rank that is last in 27 of 30 calls is a finding: 100 of 540 µs each', async () => {
  expect(leadOf(session.manifest)).toBe('collectives');
  const { findings } = (await explainSession(session)).data;
  const late = findings.find(({ rule }) => rule === 'collective_late_rank')!;
  expect(late.at_stake_ms).toBeCloseTo(0.1, 12);
  expect(late.at_stake_share).toBeCloseTo((27 * 100) / (30 * 540), 12);
  expect(late.gain).toBeNull();
});

test.each<[string, string, (nth: number, rank: number) => number]>([
  ['by turns', 'not_fired', (nth, rank) => (nth % 2 === rank ? 400_000 : 500_000)],
  ['always the same, by less than a twentieth', 'not_fired', (_nth, rank) => 500_000 - 20_000 * rank],
  ['always the same', 'fired', (_nth, rank) => 500_000 - 100_000 * rank],
])('with two ranks, the last rank is %s: %s', async (_who, outcome, dur_ns) => {
  const rankRows = (rank: number) => rows(20, (nth) => ({ rank, dur_ns: dur_ns(nth, rank) }));
  expect(
    await lateRankOutcome(await sessionOf(testHome(), { collectives: [...rankRows(0), ...rankRows(1)] })),
  ).toBe(outcome);
});

test('communicators are in the order of their numbers', async () => {
  const names = ['tp10[20-21]', 'tp9[18-19]', 'tp2', 'tp10[2-3]', '18446744073709551615', '7'];
  const calls = names.flatMap((communicator) => rows(2, () => ({ communicator, dur_ns: 1000 })));
  const { communicators } = (await analyzeCollectives(await sessionOf(testHome(), { collectives: calls })))
    .data;
  expect(communicators.map(({ communicator }) => communicator)).toEqual([
    '7',
    '18446744073709551615',
    'tp2',
    'tp9[18-19]',
    'tp10[2-3]',
    'tp10[20-21]',
  ]);
});

test('with too few calls, one rank, or host clocks no rank is named as the cause', async () => {
  const sessionWith = (count: number, more: Row<'collectives'>, ranks = [0, 1]) =>
    sessionOf(testHome(), {
      collectives: ranks.flatMap((rank) =>
        rows(count, () => ({ rank, dur_ns: 500_000 - 100_000 * rank, ...more })),
      ),
    });
  expect(await lateRankOutcome(await sessionWith(19, {}))).toBe('not_applicable');
  expect(await lateRankOutcome(await sessionWith(30, {}, [0]))).toBe('not_applicable');
  expect(await lateRankOutcome(await sessionWith(30, { timed_by: 'kernel_cpu' }))).toBe('not_applicable');
  expect(await lateRankOutcome(await sessionWith(30, { operation: 'Broadcast' }))).toBe('not_applicable');
});

test('a log imported twice counts once, and another definition of bandwidth is stated', async () => {
  const once = rows(3, () => ({ dur_ns: 1_000_000, bus_bytes_per_s: 5e9 }));
  const { data: twice, issues } = await analyzeCollectives(
    await sessionOf(testHome(), { collectives: [...once, ...once] }),
  );
  expect(twice.recorded).toBe(3);
  expect(issues.map(({ code, count }) => [code, count])).toEqual([
    ['collectives_repeated', 3],
    ['collectives_bandwidth_differs', 1],
  ]);
});

test("a bus bandwidth above the link's is reported as an error; switches may halve the traffic of an all-reduce", async () => {
  const shareOfLink = async (bytesPerSecond: number, operation: string) => {
    // With 2 ranks the bus carries the bytes of the call for every operation.
    const bytes = bytesPerSecond / 1e3;
    const call = (rank: number) => rows(1, () => ({ rank, operation, bytes, dur_ns: 1_000_000 }));
    const session = await sessionOf(
      testHome(),
      { collectives: [...call(0), ...call(1)] },
      { workload: null },
    );
    session.manifest.hardware['gpu_name'] = 'NVIDIA H100 80GB HBM3';
    const { data: found, issues } = await analyzeCollectives(session);
    return { share: found.groups[0]!.link_share.value, codes: issues.map(({ code }) => code) };
  };
  // NVLink of an H100: 450 GB/s in one direction.
  expect(await shareOfLink(225e9, 'AllGather')).toEqual({ share: 0.5, codes: [] });
  expect(await shareOfLink(495e9, 'AllGather')).toEqual({ share: 1.1, codes: ['collectives_over_link'] });
});

test("over several hosts the link is the sum of one host's network adapters", async () => {
  const groupOver = async (hosts: [string, string], adapters?: string) => {
    // 100 GB/s: with 2 ranks the bus carries the bytes of the call.
    const call = (rank: number) =>
      rows(1, () => ({ rank, nodes: null, host: hosts[rank]!, device: 0, bytes: 1e8, dur_ns: 1_000_000 }));
    const session = await sessionOf(
      testHome(),
      { collectives: [...call(0), ...call(1)] },
      { workload: null },
    );
    session.manifest.hardware['gpu_name'] = 'NVIDIA H100 80GB HBM3';
    if (adapters !== undefined) session.manifest.hardware['network_adapters'] = adapters;
    return (await analyzeCollectives(session)).data.groups[0]!;
  };
  expect((await groupOver(['a', 'a'])).link_share.value).toBeCloseTo(100 / 450, 12);
  const twoHosts = await groupOver(['a', 'b'], '15b3:1021 15b3:1021 15b3:1021 15b3:1021');
  // Four ports of 400 Gbit/s.
  expect([twoHosts.nodes, twoHosts.link_share.value]).toEqual([2, 0.5]);
  expect((await groupOver(['a', 'b'])).link_share).toMatchObject({
    value: null,
    reason: { code: 'no_network' },
  });
});

test('waits summed over calls equal the skew of the groups', async () => {
  const database = await session.connect();
  try {
    const kinds = await readCollectiveKinds(database);
    const sums: number[] = [];
    for (const kind of kinds) {
      const waits = await readCallsByRank(database, kind);
      sums.push(waits.reduce((sum, wait) => sum + wait.waiting_ms * (wait.last - wait.first + 1), 0));
    }
    const skews = kinds.map(
      ({ operation, bytes }) =>
        data.groups.find((group) => group.operation === operation && group.bytes === bytes)!.sums!.skew_ns /
        1e6,
    );
    sums.forEach((sum, index) => expect(sum).toBeCloseTo(skews[index]!, 9));
    // 30 each of 400, 500, 520 and 540 µs.
    expect(sums[kinds.findIndex(({ operation }) => operation === 'AllReduce')]).toBeCloseTo(10.8, 9);
  } finally {
    await database.close();
  }
});
