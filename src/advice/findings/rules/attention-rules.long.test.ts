import { afterAll, describe, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import type { FindingContext } from '../rule.js';
import { closeAll, contextOf, fired, repeated, stepRows } from '../test-steps.js';
import { castsAndLayoutCopies } from './casts-and-layout-copies.js';
import { eagerAttention } from './eager-attention.js';
import { kvCacheConcat } from './kv-cache-concat.js';
import { firing, gemm, names, run } from './test-device-rules.js';

afterAll(closeAll);

describe('copies of the KV cache', () => {
  test('reports long concatenations, each of which a write of 2 µs can replace', async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => repeated(8, [gemm(100), run(50, 'copy', names.cat)])),
    );
    const finding = fired(await kvCacheConcat.find(context));
    expect(finding.gain!.expected_ms).toBeCloseTo((8 * 48) / 1000, 6);
    expect(await firing(context)).toEqual(['kv_cache_concat']);
  });

  test('a static cache of transformers adds launches, which its advice says', async () => {
    const withCache = async (cache: string) => {
      const context = await contextOf(
        stepRows('decode', 4, () => repeated(8, [gemm(100), run(50, 'copy', names.cat)])),
      );
      const workload = {
        model: { config: {}, facts: { cache } },
        engine: { name: 'transformers' },
      } as FindingContext['manifest']['workload'];
      Object.assign(context.manifest, { workload });
      return fired(await kvCacheConcat.find(context));
    };
    const dynamic = await withCache('DynamicCache');
    // Keys and values of four layers, six launches in each; five per step.
    expect(dynamic.launches).toBe(-29);
    expect(dynamic.change.text).toContain('adds about 29 launches per step');
    const own = await withCache('OwnCache');
    expect(own.launches).toBeUndefined();
    expect(own.change.text).not.toContain('launches');
  });

  test('reports short concatenations that grow with the steps, but not those of constant time', async () => {
    const steps = (us: (step: number) => number) =>
      contextOf(stepRows('decode', 16, (step) => repeated(8, [gemm(30), run(us(step), 'copy', names.cat)])));
    expect(await firing(await steps((step) => 5 + step * 0.1))).toEqual(['kv_cache_concat']);
    expect(await firing(await steps(() => 5))).toEqual([]);
  });

  test('a cache cloned by the copy engine, or repeated for every head, grows like a concatenated one', async () => {
    const onDevice = { kind: 'DtoD', src_kind: 'device', dst_kind: 'device', bytes: 2 ** 20 };
    const cloned = await contextOf(
      stepRows('decode', 16, (step) =>
        repeated(8, [gemm(30), { copy: 20 + step, more: { ...onDevice } }, run(3, 'attention', 'flash_fwd')]),
      ),
    );
    const finding = fired(await kvCacheConcat.find(cloned));
    // 8 copies of 20 to 35 µs, 27.5 on average, each reduced to a write of 2 µs.
    expect(finding.gain!.expected_ms).toBeCloseTo((8 * 25.5) / 1000, 6);
    expect(finding.title).toContain('8 copies that grow with the context');
    expect(await firing(cloned)).toEqual(['kv_cache_concat']);
    const steady = (us: (step: number) => number) =>
      contextOf(
        stepRows('decode', 16, (step) => repeated(8, [gemm(30), run(us(step), 'copy', names.layout)])),
      );
    expect(await firing(await steady((step) => 20 + step))).toEqual(['kv_cache_concat']);
    // The same copies without growth are layout copies.
    expect(await firing(await steady(() => 27.5))).toEqual(['casts_and_layout_copies']);
  });

  test('launches of one size in every step do not count as copies of the context', async () => {
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
    const finding = fired(await kvCacheConcat.find(context));
    // 8 copies of 20 to 35 µs, each reduced to a write of 2 µs, without those of 100 µs.
    expect(finding.gain!.expected_ms).toBeCloseTo((8 * 25.5) / 1000, 6);
    expect(fired(await castsAndLayoutCopies.find(context)).gain!.expected_ms).toBeCloseTo(0.8, 2);
  });

  test('does not report concatenations that append no token, such as halves of rotary embeddings', async () => {
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

  test('reports nothing for a prefill', async () => {
    const context = await contextOf(
      stepRows('prefill', 4, () => repeated(8, [gemm(100), run(50, 'copy', names.cat)])),
    );
    expect(await firing(context)).toEqual([]);
  });
});

describe('attention', () => {
  test('counts unfused attention from the GEMM before the softmax to the GEMM after it', async () => {
    const attention = [
      gemm(60),
      run(100, 'elementwise', names.mul),
      run(200, 'attention', names.softmax),
      gemm(60),
    ];
    const context = await contextOf(
      stepRows('prefill', 3, () => repeated(2, [gemm(200), ...attention, gemm(200)])),
    );
    // Without a model 15 % of the 420 µs remain.
    expect(fired(await eagerAttention.find(context)).gain!.expected_ms).toBeCloseTo(2 * 0.42 * 0.85, 6);
    expect(await firing(context)).toEqual(['eager_attention']);
  });

  /** Two GEMMs around an unfused softmax, as einsum launches them: heads × rows × columns by their operators. */
  const unfusedSteps = (gemms: [number[][], number[][]], reduces: boolean, around?: string) => {
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
    const ops = gemms.map((shapes, i) => ({
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

  test('recognizes an unfused softmax by the GEMMs around it, for any kernel names', async () => {
    const context = await unfusedSteps(scores, true);
    // 400 µs from GEMM to GEMM, of which 15 % remain.
    expect(fired(await eagerAttention.find(context)).gain!.expected_ms).toBeCloseTo(2 * 0.4 * 0.85, 6);
    // Experts also multiply the result of a GEMM, but without a reduction between; a norm reduces, but between other
    // GEMMs.
    expect((await eagerAttention.find(await unfusedSteps(scores, false))).outcome).toBe('not_fired');
    const otherShapes: [number[][], number[][]] = [scores[0], [[32, 512, 64], scores[0][1]!]];
    expect((await eagerAttention.find(await unfusedSteps(otherShapes, true))).outcome).toBe('not_fired');
  });

  test("a router's softmax between two GEMMs is not attention: experts are chosen before or after it", async () => {
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

  test('with as many fused attentions as softmaxes, the softmaxes are not attention', async () => {
    const layer = [gemm(100), run(30, 'attention', names.flash), gemm(100)];
    const softmax = run(200, 'attention', names.softmax);
    const steps = (fused: boolean) =>
      contextOf(
        stepRows('decode', 4, () => repeated(4, [...(fused ? layer : []), gemm(20), softmax, gemm(100)])),
      );
    expect((await eagerAttention.find(await steps(false))).outcome).toBe('fired');
    const outcome = await eagerAttention.find(await steps(true));
    expect(outcome).toMatchObject({ outcome: 'not_fired' });
    expect('why' in outcome && outcome.why).toContain('fused attention kernels run (4');
  });

  test('does not report GEMMs of rotary embeddings, which have no scores', async () => {
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
    expect((await eagerAttention.find(await unfusedSteps(rotary, true))).outcome).toBe('not_fired');
  });

  test('suggests another backend if the math backend writes the scores', async () => {
    const context = await unfusedSteps(scores, true, 'aten::_scaled_dot_product_attention_math');
    expect(fired(await eagerAttention.find(context)).change.text).toContain('its unfused math backend');
  });

  test("a sampler's softmax after the last GEMM is not attention", async () => {
    const context = await contextOf(
      stepRows('decode', 4, () => [...repeated(4, [gemm(200)]), run(200, 'attention', names.softmax)]),
    );
    expect(await firing(context)).toEqual([]);
  });
});
