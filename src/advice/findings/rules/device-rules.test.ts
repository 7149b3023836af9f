import { afterAll, describe, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import type { FindingContext, Rule } from '../rule.js';
import { closeAll, contextOf, fired, type Part, repeated, stepRows } from '../test-steps.js';
import { castsAndLayoutCopies } from './casts-and-layout-copies.js';
import { eagerAttention } from './eager-attention.js';
import { elementwiseNormOverhead } from './elementwise-norm-overhead.js';
import { exposedCommunication } from './exposed-communication.js';
import { gemmShape } from './gemm-shape.js';
import { halfPrecision } from './half-precision.js';
import { kvCacheConcat } from './kv-cache-concat.js';
import { rankStragglers } from './rank-stragglers.js';

afterAll(closeAll);

const deviceRules: Rule[] = [
  kvCacheConcat,
  castsAndLayoutCopies,
  elementwiseNormOverhead,
  eagerAttention,
  halfPrecision,
  gemmShape,
  exposedCommunication,
  rankStragglers,
];
async function firing(context: FindingContext): Promise<string[]> {
  const names: string[] = [];
  for (const rule of deviceRules) if ((await rule.find(context)).outcome === 'fired') names.push(rule.id);
  return names;
}

const run = (takes: number, kernelClass: string, name: string, more: Row<'kernels'> = {}): Part => ({
  kernel: takes,
  more: { class: kernelClass, name, short_name: name, ...more },
});
/** Names as PyTorch's own kernels bear them in nsys. */
const names = {
  gemm: 'nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT',
  cat: 'void at::native::<unnamed>::CatArrayBatchedCopy_vectorized<OpaqueType<2>, unsigned int, 4, 64, 64>',
  cast: 'void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)>',
  layout:
    'void at::native::elementwise_kernel<128, 4, gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda>>',
  mul: 'void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<MulFunctor>>',
  norm: 'void at::native::<unnamed>::vectorized_layer_norm_kernel<float>',
  softmax: 'void at::native::<unnamed>::cunn_SoftMaxForward<8, c10::BFloat16>',
  topk: 'void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>',
  flash: 'void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>',
  scan: 'void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float>>',
};
const gemm = (takes: number, more: Row<'kernels'> = {}) =>
  run(takes, 'gemm', names.gemm, { dtype: 'bf16', ...more });

describe('copies of the KV cache', () => {
  test('long concatenations; each is left with a write of 2 µs', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => repeated(8, [gemm(100), run(50, 'copy', names.cat)])),
    );
    const found = fired(await kvCacheConcat.find(context));
    expect(found.gain!.expected_ms).toBeCloseTo((8 * 48) / 1000, 6);
    expect(await firing(context)).toEqual(['kv_cache_concat']);
  });

  test('short ones that grow with the steps, not those that stay', async () => {
    const steps = (us: (step: number) => number) =>
      contextOf(stepRows('decode', 16, (step) => repeated(8, [gemm(30), run(us(step), 'copy', names.cat)])));
    expect(await firing(await steps((step) => 5 + step * 0.1))).toEqual(['kv_cache_concat']);
    expect(await firing(await steps(() => 5))).toEqual([]);
  });

  test('a cache that is cloned by the copy engine, or repeated for every head, grows as one that is concatenated', async () => {
    const onDevice = { kind: 'DtoD', src_kind: 'device', dst_kind: 'device', bytes: 2 ** 20 };
    const cloned = await contextOf(
      stepRows('decode', 16, (step) =>
        repeated(8, [gemm(30), { copy: 20 + step, more: { ...onDevice } }, run(3, 'attention', 'flash_fwd')]),
      ),
    );
    const found = fired(await kvCacheConcat.find(cloned));
    // 8 copies of 20 to 35 µs, 27.5 on average, of which a write of 2 µs stays.
    expect(found.gain!.expected_ms).toBeCloseTo((8 * 25.5) / 1000, 6);
    expect(found.title).toContain('8 copies that grow with the context');
    expect(await firing(cloned)).toEqual(['kv_cache_concat']);
    const steady = (us: (step: number) => number) =>
      contextOf(
        stepRows('decode', 16, (step) => repeated(8, [gemm(30), run(us(step), 'copy', names.layout)])),
      );
    expect(await firing(await steady((step) => 20 + step))).toEqual(['kv_cache_concat']);
    // The same copies without growth are layout copies.
    expect(await firing(await steady(() => 27.5))).toEqual(['casts_and_layout_copies']);
  });

  test('a kernel that copies the context and converts weights: launches of one size in every step are no context', async () => {
    const sizes = (blocks: number): Row<'kernels'> => ({ grid: `${blocks},1,1` });
    const context = await contextOf(
      stepRows('decode', 16, (step) =>
        repeated(8, [
          run(100, 'copy', names.cast, sizes(4096)),
          gemm(60),
          run(20 + step, 'copy', names.cast, sizes(64 + step)),
          run(3, 'attention', 'flash_fwd'),
        ]),
      ),
    );
    const found = fired(await kvCacheConcat.find(context));
    // 8 copies of 20 to 35 µs, of which a write of 2 µs stays; not those of 100 µs.
    expect(found.gain!.expected_ms).toBeCloseTo((8 * 25.5) / 1000, 6);
    expect(fired(await castsAndLayoutCopies.find(context)).gain!.expected_ms).toBeCloseTo(0.8, 2);
  });

  test('concatenations that append no token, by their shapes, are something else: halves of rotary embeddings', async () => {
    const withShapes = (input_shapes: string) => {
      const rows = stepRows('decode', 4, () => repeated(8, [gemm(100), run(50, 'copy', names.cat)]));
      return contextOf({
        ...rows,
        ops: [{ op_id: 1, name: 'aten::cat', start_ns: 10, dur_ns: 10, input_shapes }],
      });
    };
    expect(await firing(await withShapes('[[[1,32,1,64],[1,32,1,64]],[]]'))).toEqual([]);
    expect(await firing(await withShapes('[[[1,32,700,128],[1,32,1,128]],[]]'))).toEqual(['kv_cache_concat']);
  });

  test('a prefill has none', async () => {
    const context = await contextOf(
      stepRows('prefill', 4, () => repeated(8, [gemm(100), run(50, 'copy', names.cat)])),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('conversions', () => {
  test('of weights before every product are casts, all of their time', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () =>
        repeated(8, [run(8, 'norm', names.norm), run(160, 'copy', names.cast), gemm(100)]),
      ),
    );
    const found = fired(await castsAndLayoutCopies.find(context));
    expect(found.gain!.expected_ms).toBeCloseTo(1.28, 6);
    expect(found.title).toMatch(/^Weights converted at every use: .* \(8 kernels\)$/);
    expect(await firing(context)).toEqual(['casts_and_layout_copies']);
  });

  test('that write the tokens of a step are none', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => repeated(8, [gemm(20), run(2.4, 'copy', names.layout)])),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('chains of elementwise kernels', () => {
  test('six kernels become one that takes three quarters of the longest, where they convert', async () => {
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

  test('an addition and a norm between two products are none, nor are running sums', async () => {
    const pair = [run(20, 'elementwise', names.mul), run(20, 'norm', names.norm)];
    expect(
      await firing(await contextOf(stepRows('prefill', 3, () => repeated(4, [gemm(200), ...pair])))),
    ).toEqual([]);
    const scans = [run(80, 'norm', names.scan), run(2, 'elementwise', names.mul)];
    expect(await firing(await contextOf(stepRows('decode', 4, () => repeated(6, scans))))).toEqual([]);
  });
});

describe('attention', () => {
  test('written out: from the product before the softmax to the one after it', async () => {
    const attention = [
      gemm(60),
      run(100, 'elementwise', names.mul),
      run(200, 'attention', names.softmax),
      gemm(60),
    ];
    const context = await contextOf(
      stepRows('prefill', 3, () => repeated(2, [gemm(200), ...attention, gemm(200)])),
    );
    // Without a model 15 % of the 420 µs are left.
    expect(fired(await eagerAttention.find(context)).gain!.expected_ms).toBeCloseTo(2 * 0.42 * 0.85, 6);
    expect(await firing(context)).toEqual(['eager_attention']);
  });

  /** Two products around a softmax that is written out, as einsum launches them: heads × rows × columns by their operators. */
  const writtenOut = (products: [number[][], number[][]], reduces: boolean, around?: string) => {
    const rows = stepRows('prefill', 3, () =>
      repeated(2, [
        gemm(200),
        gemm(60, { op_id: 1 }),
        run(100, 'elementwise', names.mul),
        run(80, reduces ? 'norm' : 'elementwise', reduces ? names.norm : names.mul),
        run(100, 'elementwise', names.mul),
        gemm(60, { op_id: 2 }),
        gemm(200),
      ]),
    );
    const ops = products.map((shapes, i) => ({
      op_id: i + 1,
      name: 'aten::bmm',
      start_ns: 0,
      dur_ns: 1000,
      input_shapes: JSON.stringify(shapes),
    }));
    const container = around ? [{ op_id: 3, name: around, start_ns: 0, dur_ns: 3000 }] : [];
    return contextOf({ ...rows, ops: [...ops, ...container] });
  };
  const scores: [number[][], number[][]] = [
    [
      [32, 512, 64],
      [32, 64, 512],
    ],
    [
      [32, 512, 512],
      [32, 512, 64],
    ],
  ];

  test('a softmax written out is one by what the products around it multiply, whatever its kernels are called', async () => {
    const context = await writtenOut(scores, true);
    // 400 µs from product to product, of which 15 % are left.
    expect(fired(await eagerAttention.find(context)).gain!.expected_ms).toBeCloseTo(2 * 0.4 * 0.85, 6);
    // Experts multiply what a product made, too, and reduce nothing between; a norm reduces, between other products.
    expect((await eagerAttention.find(await writtenOut(scores, false))).outcome).toBe('not_fired');
    const others: [number[][], number[][]] = [scores[0], [[32, 512, 64], scores[0][1]!]];
    expect((await eagerAttention.find(await writtenOut(others, true))).outcome).toBe('not_fired');
  });

  test('a router computes a softmax between two products, too: experts are chosen after it, or before it', async () => {
    const softmax = run(200, 'attention', names.softmax);
    const choice = run(40, 'sampling', names.topk);
    const sum = run(20, 'norm', names.scan);
    for (const router of [
      [gemm(20), softmax, choice, sum],
      [gemm(20), choice, softmax],
      [gemm(20), softmax, sum],
    ])
      expect(
        await firing(
          await contextOf(stepRows('decode', 4, () => repeated(4, [gemm(200), ...router, gemm(200)]))),
        ),
      ).toEqual([]);
  });

  test('as many fused attentions as softmaxes: the softmaxes are of something else', async () => {
    const layer = [gemm(100), run(30, 'attention', names.flash), gemm(100)];
    const softmax = run(200, 'attention', names.softmax);
    const steps = (fused: boolean) =>
      contextOf(
        stepRows('decode', 4, () => repeated(4, [...(fused ? layer : []), gemm(20), softmax, gemm(100)])),
      );
    expect((await eagerAttention.find(await steps(false))).outcome).toBe('fired');
    const outcome = await eagerAttention.find(await steps(true));
    expect(outcome).toMatchObject({ outcome: 'not_fired' });
    expect('why' in outcome && outcome.why).toContain('4 fused attention kernels run');
  });

  test('rotary embeddings multiply without scores', async () => {
    const rotary: [number[][], number[][]] = [
      [
        [2, 64, 1],
        [2, 1, 1],
      ],
      [
        [2, 64, 1],
        [2, 1, 1],
      ],
    ];
    expect((await eagerAttention.find(await writtenOut(rotary, true))).outcome).toBe('not_fired');
  });

  test('scores that the math backend writes: the program calls the fused operator already', async () => {
    const context = await writtenOut(scores, true, 'aten::_scaled_dot_product_attention_math');
    expect(fired(await eagerAttention.find(context)).change.text).toContain('its unfused math backend');
  });

  test("a sampler's softmax after the last product is none", async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [...repeated(4, [gemm(200)]), run(200, 'attention', names.softmax)]),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('products', () => {
  const wide = { name: 'sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8', dtype: 'fp32' };
  test('in float32; half of a memory-bound step remains', async () => {
    const context = await contextOf(stepRows('decode', 4, () => repeated(4, [gemm(250, wide)])));
    expect(fired(await halfPrecision.find(context)).gain!.expected_ms).toBeCloseTo(0.5, 6);
    expect(await firing(context)).toEqual(['half_precision']);
  });

  test('a small one in float32 among others is none', async () => {
    const context = await contextOf(stepRows('decode', 4, () => [gemm(1000), gemm(20, wide)]));
    expect(await firing(context)).toEqual([]);
  });

  test('that load 2 bytes at once take 2.5 times as long; those that load 16 are aligned', async () => {
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
  test('an all-reduce behind every product: half of what is exposed', async () => {
    const context = await contextOf(stepRows('decode', 4, () => repeated(4, [gemm(100), reduce(40)])));
    const found = fired(await exposedCommunication.find(context));
    expect(found.at_stake_ms).toBeCloseTo(0.16, 6);
    expect(found.gain!.expected_ms).toBeCloseTo(0.08, 6);
    expect(await firing(context)).toEqual(['exposed_communication']);
  });

  /** Two ranks with one device clock: each has 4 products, a host gap, and an all-reduce until both have arrived. */
  const twoRanks = (host: [number, number], reduces: (rank: number) => number[]) => {
    const of = (rank: number) => {
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
    const [first, second] = [of(0), of(1)];
    return {
      stages: [...first.stages, ...second.stages],
      kernels: [...first.kernels, ...second.kernels],
      gaps: [...first.gaps, ...second.gaps],
    };
  };

  test('a rank that comes late: the others wait inside their collectives, and fewer GPUs are no cure', async () => {
    // 4 times: rank 0 is there after 100 µs, rank 1 after 150; both are done after 160.
    const reduces = (rank: number) => [0, 1, 2, 3].map(() => (rank === 0 ? 60 : 10));
    const context = await contextOf(twoRanks([0, 50], reduces));
    expect(context.scope!.source.focus.rank).toBe(0);
    const found = fired(await exposedCommunication.find(context));
    expect(found.title).toContain('until rank 1 on device 1 arrives');
    expect(found.at_stake_ms).toBeCloseTo(0.2, 6);
    expect(found.gain!.expected_ms).toBeCloseTo(0.2, 6);
    expect(found.cause).toContain('its device waits 0.200 ms for its host');
    expect(found.change.example).toContain('--rank 1');
    expect(found.evidence[0]!.rows).toMatchObject([
      {
        rank: 0,
        waiting_ms: expect.closeTo(0.2, 6) as number,
        transfer_ms: expect.closeTo(0.04, 6) as number,
      },
      { rank: 1, waiting_ms: 0, transfer_ms: expect.closeTo(0.04, 6) as number },
    ]);
  });

  test('a rank that comes late once, as at the begin: the exchange is judged, without that waiting', async () => {
    const rows = twoRanks([0, 0], () => [40, 40, 40, 40]);
    const first = rows.kernels.find(({ rank, class: of }) => rank === 0 && of === 'communication')!;
    const once = rows.kernels.map((row) =>
      row === first ? { ...row, dur_ns: 2_040_000, exclusive_ns: 2_040_000 } : row,
    );
    const found = fired(await exposedCommunication.find(await contextOf({ ...rows, kernels: once })));
    expect(found.title).toContain('Exposed communication');
    expect(found.cause).toContain('0.667 ms of it is waiting for rank 1 on device 1; in 1 of 3 instances it');
    // 4 of 40 µs are exchange; 2 ms in one of three steps are not.
    expect(found.gain!.expected_ms).toBeCloseTo(0.08, 6);
  });

  test('unlike numbers of collectives, or pairs that do not meet: how much is waiting is not known', async () => {
    const one = twoRanks([0, 50], (rank) => [0, 1, 2, 3].map(() => (rank === 0 ? 60 : 10)));
    const fewer = { ...one, kernels: one.kernels.slice(0, -1) };
    const apart = {
      ...one,
      kernels: one.kernels.map((row) => (row.rank === 1 ? { ...row, start_ns: row.start_ns! + 1e7 } : row)),
    };
    for (const rows of [fewer, apart]) {
      const found = fired(await exposedCommunication.find(await contextOf(rows)));
      expect(found.cause).toContain('how much is not known');
      expect(found.at_stake_ms).toBeCloseTo(0.24, 6);
      expect(found.evidence[1]!.rows[0]).toMatchObject({ waiting_ms: null, transfer_ms: null });
    }
  });

  test('a rank that computes longer: what an even share would save', async () => {
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
        const short =
          row.class === 'gemm'
            ? { dur_ns: 100_000, exclusive_ns: 100_000 }
            : { dur_ns: 202_000, exclusive_ns: 202_000 };
        return { ...row, ...rank1, ...short, stage_id: row.stage_id! + 100 };
      }),
    );
    const context = await contextOf(rows);
    // 1200 and 400 µs: 800 each.
    expect(fired(await rankStragglers.find(context)).gain!.expected_ms).toBeCloseTo(0.4, 6);
    expect(await firing(context)).toEqual(['rank_stragglers']);
  });
});
