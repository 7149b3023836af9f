import { join } from 'node:path';
import process from 'node:process';
import { afterEach, expect, test, vi } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { type PlantedRun, writeKinetoRanks } from '../../record/ranks/test-ranks.js';
import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import { whatIf } from '../../advice/what-if/what-if.js';
import type { MeasuredFigure } from '../../model/figure.js';
import { openSession } from '../../session/open.js';
import { compareSessions } from '../../compare/sessions/compare.js';
import type { ComparedScaling } from '../../model/documents/compare.js';
import { collectiveBlocks } from '../../views/collectives.js';
import { testFolder } from '../../session/test-folder.js';
import { importPart } from './import-part.js';
import { importRanks } from './import-ranks.js';

afterEach(() => vi.unstubAllEnvs());

/** Planted faults, with the rule and rank that must come first; RANK_SEEDS=100 measures more (docs/verified.md). */
const seeds = Array.from({ length: Number(process.env['RANK_SEEDS'] ?? 1) }, (_, seed) => seed);
const causes: [rule: string, text: (rank: number) => RegExp, plant: (rank: number) => Partial<PlantedRun>][] =
  [
    ['rank_stragglers', (rank) => new RegExp(`rank ${rank} `), (rank) => ({ slowRank: { rank, us: 80 } })],
    [
      'slow_link',
      (rank) => new RegExp(`ranks ${rank < 4 ? '0-3' : '4-7'} `),
      (rank) => ({ slowLink: { rank, factor: 4 } }),
    ],
    [
      'expert_imbalance',
      (rank) => new RegExp(`rank ${rank} `),
      (rank) => ({ hotExpert: { rank, factor: 2 } }),
    ],
  ];

type Scaled = NonNullable<ComparedScaling['values'][number]>;

async function explainPlanted(planted: PlantedRun) {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  writeKinetoRanks(join(folder, 'traces'), planted);
  const options = { tag: [], raw: false, quiet: true, jobs: 2 };
  const id = await importRanks([join(folder, 'traces')], options, new AbortController().signal, importPart);
  const session = await openSession(id);
  return { ...(await explainSession(session)).data, collectives: await analyzeCollectives(session), session };
}

test.each(
  seeds.flatMap((seed) =>
    causes.map(([rule, text, plant]) => ({ seed, rank: (3 * seed + 5) % 8, rule, text, plant })),
  ),
)('seed $seed: $rule of rank $rank is first', async ({ seed, rank, rule, text, plant }) => {
  const { findings, stages, collectives } = await explainPlanted({
    seed,
    ranks: 8,
    steps: 5,
    layers: 3,
    ...plant(rank),
  });
  expect(findings[0]?.rule).toBe(rule);
  expect(findings[0]?.title).toMatch(text(rank));
  expect(findings.map((finding) => finding.rule)).toEqual(
    expect.not.arrayContaining(causes.map(([cause]) => cause).filter((cause) => cause !== rule)),
  );
  const { job, groups } = collectives.data;
  expect(job!.ranks.find(({ late_cause }) => late_cause !== null)?.rank ?? null).toBe(
    rule === 'slow_link' ? null : rank,
  );
  // Rank's own time: every step of the slow rank has 3 attentions that are 80 µs longer; a slow link adds no rank's own time.
  const { steps, ranks } = job!.step_times!;
  expect(steps).toEqual([1, 2, 3, 4, 5].map((step) => ({ first: step, last: step })));
  const otherRanks = ranks.filter((row) => row.rank !== rank);
  const median = (rankRows: typeof ranks, stepIndex: number) =>
    rankRows.map(({ ms }) => ms[stepIndex]!).toSorted((a, b) => a - b)[rankRows.length >> 1]!;
  for (const stepIndex of steps.keys()) {
    const rankMs = ranks.find((row) => row.rank === rank)!.ms[stepIndex]!;
    const excess = rankMs - median(otherRanks, stepIndex);
    if (rule === 'rank_stragglers') expect(Math.abs(excess - 0.24)).toBeLessThan(0.02);
    if (rule === 'slow_link') expect(Math.abs(excess)).toBeLessThan(0.02);
    if (rule === 'expert_imbalance') expect(excess).toBeGreaterThan(0.15);
  }
  expect(collectives.issues.map(({ code }) => code)).not.toContain('collectives_over_link');
  for (const { sums, link_share } of groups) {
    expect(sums!.wire_ns + sums!.skew_ns).toBe(sums!.time_ns);
    expect(link_share.value).toBeLessThan(1);
  }
  for (const row of job!.ranks) {
    expect(row.exposed_ms! + row.overlapped_ms!).toBeCloseTo(row.wire_ms! + row.skew_ms!, 9);
    expect(row.compute_ms! + row.exposed_ms!).toBeLessThan(row.step_ms!);
  }
  // Bars of a rank sum to its step, whether exposed communication is split or not.
  for (const stage of stages) expect(stage.sum_error_share).toBeLessThan(1e-9);
  expect(stages[0]!.bars.map(({ id }) => id)).toContain('exposed_comm.wire');
});

test.each([
  [2, 3 / 5],
  [8, 3 / 11],
])(
  'a pipeline of 4 ranks and %s micro-batches: each waits (p − 1) / (m + p − 1) of a step',
  async (microBatches, share) => {
    // In its first step a rank waits only for the ranks before it.
    const size = { seed: microBatches, ranks: 4, steps: 24, layers: 6 };
    const { findings, stages, collectives } = await explainPlanted({ ...size, microBatches });
    const found = findings.find(({ rule }) => rule === 'pipeline_bubbles')!;
    expect(findings[0]).toBe(found);
    expect(found.at_stake_ms! / stages[0]!.measured_ms.value!).toBeCloseTo(share, 1);
    expect(found.gain!.expected_ms).toBeCloseTo(found.at_stake_ms! / 2, 9);
    expect(found.cause).toContain(`${microBatches} micro-batches`);
    expect(found.title).toContain('busiest of 4 ranks');
    expect(findings.map(({ rule }) => rule)).not.toContain('rank_stragglers');
    expect(stages[0]!.sum_error_share).toBeLessThan(1e-9);
    for (const { stages_ms, step_ms, skew_ms } of collectives.data.job!.ranks) {
      expect(stages_ms! / step_ms!).toBeGreaterThan(0.9 * share);
      expect(stages_ms).toBe(skew_ms);
    }
    const transfers = collectives.data.groups.find(({ bytes }) => bytes === 2 ** 20)!;
    expect(transfers).toMatchObject({ operation: 'Send and Recv', ranks: 2, communicators: 3 });
    // Generated links carry 300 GB/s after 12 µs; an H100's NVLink has 450.
    const wire = 2 ** 20 / 300e9 + 12e-6;
    expect(transfers.link_share.value! / (2 ** 20 / wire / 450e9)).toBeCloseTo(1, 1);
  },
);

test('a pipeline that sends and receives between its steps: the times belong to the step before', async () => {
  const size = { seed: 7, ranks: 2, steps: 12, layers: 6, microBatches: 4, stepPerMicroBatch: true };
  const { findings, stages, collectives, session } = await explainPlanted(size);
  const [bubble] = findings;
  expect(bubble).toMatchObject({ id: 'pipeline_bubbles:prefill' });
  // (p - 1) / (m + p - 1)
  expect(bubble!.at_stake_ms! / stages[0]!.measured_ms.value!).toBeCloseTo(1 / 5, 1);
  expect(bubble!.cause).toContain('4 micro-batches');
  expect(stages[0]!.sum_error_share).toBeLessThan(1e-9);
  const { ranks, step_kind } = collectives.data.job!;
  expect(step_kind).toBe('prefill');
  for (const { steps, step_ms, compute_ms, exposed_ms, stages_ms } of ranks) {
    expect(steps).toBe(48);
    expect(stages_ms! / step_ms!).toBeGreaterThan(0.9 / 5);
    expect(compute_ms! + exposed_ms!).toBeLessThan(step_ms!);
  }
  const database = await session.connect();
  // Only the receive before the first step of the last stage is in no step.
  expect(
    await database.query(
      'SELECT rank, count(*) AS n FROM collectives WHERE stage_id IS NULL GROUP BY rank ORDER BY rank',
    ),
  ).toEqual([
    { rank: 0, n: 60 },
    { rank: 1, n: 60 },
  ]);
  await database.close();
});

test('DeepEP on 8 ranks: kernels without a call are one group of all ranks, and the slow rank is named', async () => {
  // The all-reduces of all ranks align the clocks.
  const size = { seed: 9, ranks: 8, tensorRanks: 8, steps: 5, layers: 3, deepEp: true };
  const { findings, stages, collectives } = await explainPlanted({ ...size, slowRank: { rank: 6, us: 200 } });
  const { groups, job } = collectives.data;
  const exchange = groups.filter(({ operation }) => operation === 'AllToAll');
  // One dispatch and one combine per layer.
  expect(exchange.map(({ ranks, recorded, complete }) => [ranks, recorded, complete])).toEqual([
    [8, 2 * 3 * 5 * 8, 2 * 3 * 5],
  ]);
  expect(findings[0]).toMatchObject({ rule: 'rank_stragglers' });
  expect(findings[0]!.title).toContain('rank 6 ');
  expect(job!.ranks.find(({ late_cause }) => late_cause !== null)?.rank).toBe(6);
  const [rankTable] = collectiveBlocks(collectives);
  expect(rankTable).toMatchObject({
    rows: [{ cells: expect.arrayContaining([{ count: 6 }]) }, ...Array.from({ length: 7 }, () => ({}))],
  });
  for (const row of job!.ranks)
    expect(row.exposed_ms! + row.overlapped_ms!).toBeCloseTo(row.wire_ms! + row.skew_ms!, 9);
  expect(stages[0]!.bars.map(({ id }) => id)).toContain('exposed_comm.skew');
  expect(stages[0]!.sum_error_share).toBeLessThan(1e-9);
});

test('if the slow rank was not imported, the exchange of its group is not blamed on the link alone', async () => {
  const slowRank = { rank: 5, us: 80 };
  const { findings } = await explainPlanted({
    seed: 10,
    ranks: 8,
    steps: 5,
    layers: 3,
    slowRank,
    missing: [5],
  });
  expect(findings[0]).toMatchObject({ rule: 'slow_link', confidence: 'low' });
  expect(findings[0]!.title).toContain('or a late rank that was not imported: the exchange of ranks 4, 6-7 ');
  expect(findings[0]!.cause).toContain('3 of the 4 ranks of the group were imported');
});

test('a slow stage of a pipeline is reported as such, and the bubble is only its own waiting time', async () => {
  const size = { seed: 2, ranks: 4, steps: 6, layers: 8, microBatches: 8 };
  const { findings } = await explainPlanted({ ...size, slowRank: { rank: 2, us: 60 } });
  expect(findings[0]).toMatchObject({ rule: 'rank_stragglers' });
  expect(findings[0]!.title).toContain('rank 2 ');
  const [evenPipeline] = (await explainPlanted(size)).findings;
  const bubble = findings.find(({ rule }) => rule === 'pipeline_bubbles')!;
  expect(evenPipeline!.rule).toBe('pipeline_bubbles');
  expect(bubble.at_stake_ms! / evenPipeline!.at_stake_ms!).toBeCloseTo(1, 0);
});

test('disaggregated serving: KV cache goes from prefill ranks to decode ranks, compared with the link', async () => {
  const bytes = 64 * 2 ** 20;
  const { collectives, findings, session } = await explainPlanted({
    seed: 4,
    ranks: 4,
    steps: 10,
    layers: 6,
    kvCacheBytes: bytes,
  });
  const { transfers, ranks: jobRanks } = collectives.data.job!;
  expect(
    jobRanks.map(({ rank, step_kind, steps: n, late_cause }) => [rank, step_kind, n, late_cause]),
  ).toEqual([
    [0, 'prefill', 10, null],
    [1, 'prefill', 10, null],
    [2, 'decode', 10, null],
    [3, 'decode', 10, null],
  ]);
  expect(
    transfers
      .map(({ sender, receiver, transfers: n, bytes: all, kv_cache: kv }) => [sender, receiver, n, all, kv])
      .toSorted(),
  ).toEqual([
    [0, 2, 10, 10 * bytes, true],
    [1, 3, 10, 10 * bytes, true],
  ]);
  // Generated links carry 300 GB/s after 12 µs; an H100's NVLink has 450.
  const rate = bytes / (bytes / 300e9 + 12e-6);
  for (const { bandwidth, link_share, receiver_waits_ms, sender_waits_ms } of transfers) {
    expect(bandwidth.value! / rate).toBeCloseTo(1, 1);
    expect(link_share.value).toBeCloseTo(bandwidth.value! / 450e9, 9);
    // The receiver waits for the prefill.
    expect(receiver_waits_ms).toBeGreaterThan(10 * sender_waits_ms);
  }
  expect(findings.map(({ rule }) => rule)).not.toContain('pipeline_bubbles');
  const steps = 10;
  // The rank with the longer step is analyzed first. A prefill ends when the next one starts, even if its cache is still being sent.
  expect(findings[0]).toMatchObject({ id: 'kv_transfer:decode', hidden_by: null });
  const prefill = (await explainSession(session, { rank: 1 })).data;
  expect(prefill.findings[0]).toMatchObject({ id: 'kv_transfer:prefill', hidden_by: null });
  expect(prefill.stages[0]!.bars.find(({ id }) => id === 'unattributed')!.share).toBeLessThan(0.01);
  const [, { step_ms: prefillMs }] = jobRanks as [unknown, (typeof jobRanks)[number]];
  expect(prefillMs! / prefill.stages[0]!.measured_ms.value!).toBeCloseTo(1, 6);
  const decode = (await explainSession(session, { rank: 2 })).data.findings;
  // A receive blocks its decode step: the whole transfer and the waiting before it are exposed.
  const { wire_ms: wireMs, receiver_waits_ms: waitsMs } = transfers.find(({ receiver }) => receiver === 2)!;
  expect(decode[0]).toMatchObject({ id: 'kv_transfer:decode', hidden_by: null });
  expect(decode[0]!.at_stake_ms).toBeCloseTo((wireMs + waitsMs) / steps, 3);
});

test.each(seeds)('seed %s without a fault: none of the rules fires', async (seed) => {
  const { rules } = await explainPlanted({ seed, ranks: 8, steps: 5, layers: 3 });
  for (const [rule] of causes)
    expect(rules.find((outcome) => outcome.rule === rule)?.outcome).toBe('not_fired');
});

test.each(seeds)(
  'seed %s: what-if gives the step time of the same run without the fault',
  async (seed) => {
    const size = { ranks: 4, tensorRanks: 2, steps: 5, layers: 3 };
    const [whole] = (await explainPlanted({ seed, ...size })).stages;
    const rank = (3 * seed + 5) % 4;
    for (const [word, plant] of [
      ['no-slow-rank', { slowRank: { rank, us: 80 } }],
      ['equal-links', { slowLink: { rank, factor: 4 } }],
    ] as const) {
      const { session, findings } = await explainPlanted({ seed, ...size, ...plant });
      const [slow] = (await whatIf(session, [word])).data.stages;
      const after = slow!.after_ms as MeasuredFigure;
      const truth = whole!.measured_ms.value!;
      const gain = slow!.before_ms.value! - truth;
      expect(gain).toBeGreaterThan(0.08);
      // Within a tenth of the gain, and inside the interval.
      expect(Math.abs(after.value - truth)).toBeLessThan(0.1 * gain);
      expect(after.ci95![0]).toBeLessThan(truth);
      expect(after.ci95![1]).toBeGreaterThan(truth);
      // Fixing an absent fault has no effect.
      const [same] = (await whatIf(session, [word === 'equal-links' ? 'pinned-copies' : 'equal-links'])).data
        .stages;
      expect(same!.after_ms.value).toBeCloseTo(slow!.before_ms.value!, 9);
      const { gain: stated } = findings.find(({ gain: findingGain }) => findingGain?.what_if === word)!;
      expect(stated!.expected_ms).toBeCloseTo(slow!.before_ms.value! - after.value, 9);
    }
  },
  300_000,
);

test('a slow rank and a slow link of other ranks: removing one saves what the other leaves, both the sum', async () => {
  const size = { seed: 5, ranks: 8, steps: 5, layers: 3 };
  const slowRank = { rank: 6, us: 60 };
  const slowLink = { rank: 1, factor: 4 };
  const stepOf = async (planted: Partial<PlantedRun>) =>
    (await explainPlanted({ ...size, ...planted })).stages[0]!.measured_ms.value!;
  const [whole, withSlow, withLink] = [
    await stepOf({}),
    await stepOf({ slowRank }),
    await stepOf({ slowLink }),
  ];
  const { session, stages, findings } = await explainPlanted({ ...size, slowRank, slowLink });
  const before = stages[0]!.measured_ms.value!;
  const [link] = findings;
  const slow = findings.find(({ rule }) => rule === 'rank_stragglers')!;
  expect([link!.rule, slow.hidden_by]).toEqual(['slow_link', link!.id]);
  expect(link!.change.text).toContain('Then rank 6 (GPU 6), which computes longer, sets the pace.');
  expect(Math.abs(link!.gain!.expected_ms - (before - withSlow))).toBeLessThan(0.03);
  expect(Math.abs(slow.gain!.expected_ms - (before - withLink))).toBeLessThan(0.03);
  for (const words of [
    ['no-slow-rank', 'equal-links'],
    ['equal-links', 'no-slow-rank'],
  ]) {
    const [after] = (await whatIf(session, words)).data.stages;
    expect(Math.abs(after!.after_ms.value! - whole)).toBeLessThan(0.1 * (before - whole));
  }
}, 300_000);

test("session compare: two and four ranks by step, as in the ranks' table of each session", async () => {
  const two = await explainPlanted({ seed: 3, ranks: 2, steps: 4, layers: 2 });
  const four = await explainPlanted({ seed: 3, ranks: 4, steps: 4, layers: 2 });
  const { data } = await compareSessions([two.session, four.session]);
  const [decode, ...otherPhases] = data.scaling;
  expect([decode!.phase, otherPhases]).toEqual(['decode', []]);
  const [base, now] = decode!.values as [Scaled, Scaled];
  expect(data.environment.find(({ label }) => label === 'world size')).toMatchObject({
    values: ['2', '4'],
    could_explain: expect.stringContaining('ranks'),
  });
  expect([base.ranks, base.speedup, base.efficiency, now.ranks]).toEqual([2, 1, 1, 4]);
  // Ranks without a fault differ by 1 % of noise: their mean, from other tables.
  const figuresOf = ({ collectives, stages }: typeof two) => {
    const { ranks } = collectives.data.job!;
    const mean = (valueOf: (rank: (typeof ranks)[number]) => number | null) =>
      ranks.reduce((sum, rank) => sum + valueOf(rank)!, 0) / ranks.length;
    const exposed = mean(({ exposed_ms }) => exposed_ms);
    // The waterfall's step lasts until the next one starts, the ranks' step until its last kernel ends.
    return { step_ms: mean(({ step_ms }) => step_ms), share: exposed / stages[0]!.measured_ms.value! };
  };
  const [from, to] = [figuresOf(two), figuresOf(four)];
  expect(now.speedup / (from.step_ms / to.step_ms)).toBeCloseTo(1, 1);
  expect(now.efficiency).toBeCloseTo(now.speedup / 2, 9);
  expect(base.communication_share / from.share).toBeCloseTo(1, 1);
  expect(now.communication_share / to.share).toBeCloseTo(1, 1);
  // Four ranks exchange more bytes than two for the same size.
  expect(now.communication_share).toBeGreaterThan(base.communication_share);
});
