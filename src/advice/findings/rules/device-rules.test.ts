import { afterAll, describe, expect, test } from 'vitest';
import { closeAll, contextOf, fired, repeated, stepRows } from '../test-steps.js';
import { castsAndLayoutCopies } from './casts-and-layout-copies.js';
import { elementwiseNormOverhead } from './elementwise-norm-overhead.js';
import { exposedCommunication } from './exposed-communication.js';
import { gemmShape } from './gemm-shape.js';
import { halfPrecision } from './half-precision.js';
import { rankStragglers } from './rank-stragglers.js';
import { firing, gemm, names, run } from './test-device-rules.js';

afterAll(closeAll);

describe('conversions', () => {
  test('reports all of the time of casts of weights before every GEMM', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () =>
        repeated(8, [run(8, 'norm', names.norm), run(160, 'copy', names.cast), gemm(100)]),
      ),
    );
    const finding = fired(await castsAndLayoutCopies.find(context));
    expect(finding.gain!.expected_ms).toBeCloseTo(1.28, 6);
    expect(finding.title).toMatch(/^Weights converted at every use: .* \(8 kernels\)$/);
    expect(await firing(context)).toEqual(['casts_and_layout_copies']);
  });

  test("casts of a step's tokens are not reported", async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => repeated(8, [gemm(20), run(2.4, 'copy', names.layout)])),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('chains of elementwise kernels', () => {
  test('replaces six kernels that convert by one that takes three quarters of the longest', async () => {
    const chain = [
      run(10, 'copy', names.cast),
      ...repeated(4, [run(20, 'elementwise', names.mul)]),
      run(10, 'copy', names.cast),
    ];
    const context = await contextOf(stepRows('prefill', 3, () => repeated(4, [gemm(200), ...chain])));
    // 15 of 100 µs per chain remain.
    expect(fired(await elementwiseNormOverhead.find(context)).gain!.expected_ms).toBeCloseTo(0.34, 6);
    expect(await firing(context)).toEqual(['elementwise_norm_overhead']);
  });

  test('an addition and a norm between two GEMMs, and running sums, are not reported', async () => {
    const pair = [run(20, 'elementwise', names.mul), run(20, 'norm', names.norm)];
    expect(
      await firing(await contextOf(stepRows('prefill', 3, () => repeated(4, [gemm(200), ...pair])))),
    ).toEqual([]);
    const scans = [run(80, 'norm', names.scan), run(2, 'elementwise', names.mul)];
    expect(await firing(await contextOf(stepRows('decode', 4, () => repeated(6, scans))))).toEqual([]);
  });
});

describe('GEMMs', () => {
  const wide = { name: 'sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8', dtype: 'fp32' };
  test('expects half of the time of a memory-bound float32 step to remain', async () => {
    const context = await contextOf(stepRows('decode', 4, () => repeated(4, [gemm(250, wide)])));
    expect(fired(await halfPrecision.find(context)).gain!.expected_ms).toBeCloseTo(0.5, 6);
    expect(await firing(context)).toEqual(['half_precision']);
  });

  test('does not report one small float32 GEMM among others', async () => {
    const context = await contextOf(stepRows('decode', 4, () => [gemm(1000), gemm(20, wide)]));
    expect(await firing(context)).toEqual([]);
  });

  test('GEMMs that load 2 bytes at once take 2.5 times as long as those that load 16', async () => {
    const named = (align: number) => ({
      name: `cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align${align}`,
    });
    const odd = await contextOf(stepRows('prefill', 3, () => [gemm(1000, named(1))]));
    expect(fired(await gemmShape.find(odd)).gain!.expected_ms).toBeCloseTo(0.6, 6);
    expect(await firing(odd)).toEqual(['gemm_shape']);
    expect(await firing(await contextOf(stepRows('prefill', 3, () => [gemm(1000, named(8))])))).toEqual([]);
  });
});

describe('several devices', () => {
  const reduce = (takes: number) => run(takes, 'communication', 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL');
  test('expects half of the exposed time of an all-reduce after every GEMM', async () => {
    const context = await contextOf(stepRows('decode', 4, () => repeated(4, [gemm(100), reduce(40)])));
    const finding = fired(await exposedCommunication.find(context));
    expect(finding.at_stake_ms).toBeCloseTo(0.16, 6);
    expect(finding.gain!.expected_ms).toBeCloseTo(0.08, 6);
    expect(await firing(context)).toEqual(['exposed_communication']);
  });

  /** Two ranks on one device clock: each has 4 GEMMs, a host gap, and an all-reduce until both have arrived. */
  const twoRanks = (host: [number, number], reduces: (rank: number) => number[]) => {
    const rankRows = (rank: number) => {
      const rows = stepRows('decode', 3, () =>
        reduces(rank).flatMap((takes) => [gemm(100), { idle: { host: host[rank]! } }, reduce(takes)]),
      );
      const onRank = { rank, device: rank };
      const place = (id: number | null | undefined) => ({ ...onRank, stage_id: id! + 100 * rank });
      return {
        stages: rows.stages.map((row) => ({
          ...row,
          rank,
          stage_id: row.stage_id! + 100 * rank,
          phase_id: row.stage_id! + 100 * rank,
        })),
        kernels: rows.kernels.map((row) => ({ ...row, ...place(row.stage_id) })),
        gaps: rows.gaps.map((row) => ({ ...row, ...place(row.stage_id) })),
      };
    };
    const [first, second] = [rankRows(0), rankRows(1)];
    return {
      stages: [...first.stages, ...second.stages],
      kernels: [...first.kernels, ...second.kernels],
      gaps: [...first.gaps, ...second.gaps],
    };
  };

  test('separates waiting for a late rank, which fewer GPUs would not reduce', async () => {
    // 4 times: rank 0 arrives after 100 µs, rank 1 after 150; both finish after 160.
    const reduces = (rank: number) => [0, 1, 2, 3].map(() => (rank === 0 ? 60 : 10));
    const context = await contextOf(twoRanks([0, 50], reduces));
    expect(context.scope!.source.focus.rank).toBe(0);
    const finding = fired(await exposedCommunication.find(context));
    expect(finding.title).toContain('until rank 1 (GPU 1) arrives');
    expect(finding.at_stake_ms).toBeCloseTo(0.2, 6);
    expect(finding.gain!.expected_ms).toBeCloseTo(0.2, 6);
    expect(finding.cause).toContain('its device waits 0.200 ms for its host');
    expect(finding.change.example).toContain('--rank 1');
    expect(finding.evidence[0]!.rows).toMatchObject([
      {
        rank: 0,
        waiting_ms: expect.closeTo(0.2, 6) as number,
        transfer_ms: expect.closeTo(0.04, 6) as number,
      },
      { rank: 1, waiting_ms: 0, transfer_ms: expect.closeTo(0.04, 6) as number },
    ]);
  });

  test('measures the exchange without the wait for a rank that is late once, at the start', async () => {
    const rows = twoRanks([0, 0], () => [40, 40, 40, 40]);
    const first = rows.kernels.find(({ rank, class: opClass }) => rank === 0 && opClass === 'communication')!;
    const once = rows.kernels.map((row) =>
      row === first ? { ...row, dur_ns: 2_040_000, exclusive_ns: 2_040_000 } : row,
    );
    const finding = fired(await exposedCommunication.find(await contextOf({ ...rows, kernels: once })));
    expect(finding.title).toContain('Exposed communication');
    expect(finding.cause).toContain(
      '0.667 ms of it is waiting for rank 1 (GPU 1), at least half of the communication in 1 of 3 instances.',
    );
    // 4 of 40 µs are exchange; 2 ms in one of three steps are not.
    expect(finding.gain!.expected_ms).toBeCloseTo(0.08, 6);
  });

  test('reports unknown waiting time if the ranks have different numbers of collectives, or pairs do not match', async () => {
    const matching = twoRanks([0, 50], (rank) => [0, 1, 2, 3].map(() => (rank === 0 ? 60 : 10)));
    const fewer = { ...matching, kernels: matching.kernels.slice(0, -1) };
    const disjoint = {
      ...matching,
      kernels: matching.kernels.map((row) =>
        row.rank === 1 ? { ...row, start_ns: row.start_ns! + 1e7 } : row,
      ),
    };
    for (const [rows, why] of [
      [fewer, 'the ranks launch it a different number of times'],
      [disjoint, 'the n-th kernels of the ranks do not overlap in time'],
    ] as const) {
      const finding = fired(await exposedCommunication.find(await contextOf(rows)));
      expect(finding.cause).toContain(`how much is not known: ${why}.`);
      expect(finding.evidence[1]!.text).toContain(`cannot be paired (${why})`);
      expect(finding.at_stake_ms).toBeCloseTo(0.24, 6);
      expect(finding.evidence[1]!.rows[0]).toMatchObject({ waiting_ms: null, transfer_ms: null });
    }
  });

  test.each([
    ['with more to do: what an even share would save', '300,1,1', 0.4],
    ['with as much to do: what it takes beyond the other', '100,1,1', 0.8],
  ])('a rank that computes longer, %s', async (_which, grid, saved) => {
    const rows = stepRows('prefill', 3, () => repeated(4, [gemm(300), reduce(2)]));
    const rank1 = { rank: 1, device: 1 };
    rows.stages.push(
      ...rows.stages.map((row) => ({
        ...row,
        ...rank1,
        stage_id: row.stage_id! + 100,
        phase_id: row.stage_id! + 100,
      })),
    );
    rows.kernels.push(
      ...rows.kernels.map((row) => {
        row.grid = row.class === 'gemm' ? grid : '1,1,1';
        const short =
          row.class === 'gemm'
            ? { dur_ns: 100_000, exclusive_ns: 100_000 }
            : { dur_ns: 202_000, exclusive_ns: 202_000 };
        return { ...row, ...rank1, ...short, stage_id: row.stage_id! + 100, grid: '100,1,1' };
      }),
    );
    const context = await contextOf(rows);
    // 1200 and 400 µs: 800 each.
    const { gain } = fired(await rankStragglers.find(context));
    expect([gain!.expected_ms, gain!.what_if]).toEqual([expect.closeTo(saved, 6), 'no-slow-rank']);
    expect(gain!.low_ms).toBeLessThanOrEqual(0.4);
    expect(gain!.high_ms).toBeCloseTo(0.8, 6);
    expect(await firing(context)).toEqual(['rank_stragglers']);
  });
});
