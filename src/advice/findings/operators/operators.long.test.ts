import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import { windowClocks } from '../../../facts/trace/windows.js';
import { stage, us } from '../../../facts/trace/test-hand.js';
import { castsAndLayoutCopies } from '../rules/casts-and-layout-copies.js';
import { eagerAttention } from '../rules/eager-attention.js';
import { hostBound } from '../rules/host-bound.js';
import { kvCacheConcat } from '../rules/kv-cache-concat.js';
import { noKvCache } from '../rules/no-kv-cache.js';
import { promptLogits } from '../rules/prompt-logits.js';
import { rebuiltTensors } from '../rules/rebuilt-tensors.js';
import { recompilation } from '../rules/recompilation.js';
import { unmergedAdapters } from '../rules/unmerged-adapters.js';
import { rankedFindings } from '../findings.js';
import type { FindingContext, Rule } from '../rule.js';
import { expectEvidence } from '../test-evidence.js';
import { closeAll, contextOf, fired } from '../test-steps.js';

afterAll(closeAll);

/** An operator of a step: the time before it and its duration in µs, its shapes and types. */
interface Call {
  name: string;
  durationUs: number;
  after?: number;
  class?: string;
  shapes?: unknown[];
  types?: string[];
  /** Ranges inside it with the same duration. */
  inside?: string[];
}

/** Decode steps of a program without a GPU, and operators after them. */
function stepsOf(
  count: number,
  callsOf: (step: number) => Call[],
  unmarked: Call[] = [],
): Promise<FindingContext> {
  const stages: Row<'stages'>[] = [];
  const ops: Row<'ops'>[] = [];
  let now = 0;
  for (let step = 0; step <= count; step++) {
    const start = now;
    for (const call of step < count ? callsOf(step) : unmarked) {
      now += call.after ?? 1;
      ops.push({
        op_id: ops.length + 1,
        name: call.name,
        class: call.class ?? 'gemm',
        op_type: 'cpu_op',
        stage_id: step < count ? step : null,
        start_ns: now * us,
        dur_ns: call.durationUs * us,
        self_dur_ns: call.durationUs * us,
        input_shapes: JSON.stringify(call.shapes ?? []),
        input_types: JSON.stringify(call.types ?? ['float', 'float']),
      });
      for (const name of call.inside ?? []) ops.push({ ...ops.at(-1)!, op_id: ops.length + 1, name });
      now += call.durationUs;
    }
    if (step < count) stages.push(stage(step, 'decode', start, now, { step_index: step }));
  }
  return contextOf({ stages, ops });
}

const gemm = (durationUs: number, shapes: unknown[] = []): Call => ({
  name: 'aten::bmm',
  durationUs,
  shapes,
});
const rules: Rule[] = [
  kvCacheConcat,
  castsAndLayoutCopies,
  eagerAttention,
  hostBound,
  recompilation,
  rebuiltTensors,
  noKvCache,
  promptLogits,
];
/** The finding of the rule, with a query that returns its rows on its own. */
async function findingOf(rule: Rule, context: FindingContext) {
  const draft = fired(await rule.find(context));
  await expectEvidence(context.session, [draft]);
  return draft;
}
async function firingRules(context: FindingContext): Promise<string[]> {
  const names: string[] = [];
  for (const rule of rules) if ((await rule.find(context)).outcome === 'fired') names.push(rule.id);
  return names;
}

test('reports a cache that is concatenated or reallocated by calls that write more in every step', async () => {
  const cat = (step: number): Call => ({
    name: 'aten::cat',
    durationUs: 300,
    class: 'copy',
    shapes: [
      [
        [1, 8, 100 + step, 64],
        [1, 8, 1, 64],
      ],
      [],
    ],
  });
  const context = await stepsOf(8, (step) => [gemm(500), cat(step), cat(step)]);
  const draft = await findingOf(kvCacheConcat, context);
  // 600 µs per step, of which a twentieth remains.
  expect(draft.gain!.expected_ms).toBeCloseTo(0.57, 6);
  expect(draft.evidence[0]!.rows[0]).toMatchObject({
    operator: 'aten::cat',
    grows: true,
    per_step: 2,
    // 2 × 8 × 64 × 101 and 108.
    first_elements: 103_424,
    last_elements: 110_592,
  });
  expect(await firingRules(context)).toEqual(['kv_cache_concat']);
  const copy = (tokens: number): Call => ({
    name: 'aten::copy_',
    durationUs: 300,
    class: 'copy',
    shapes: [[1, 8, tokens, 64], [1, 8, tokens, 64], []],
  });
  expect(await firingRules(await stepsOf(8, (step) => [gemm(500), copy(100 + step)]))).toEqual([
    'kv_cache_concat',
  ]);
  // Only the new token is written in every step.
  expect(await firingRules(await stepsOf(8, () => [gemm(500), copy(1)]))).toEqual([]);
});

test('reports weights that are converted at every use', async () => {
  const cast: Call = {
    name: 'aten::copy_',
    durationUs: 200,
    class: 'copy',
    shapes: [[512, 512], [512, 512], []],
    types: ['float', 'c10::Half', 'Scalar'],
  };
  const context = await stepsOf(6, () => [cast, gemm(300), cast, gemm(300)]);
  const draft = await findingOf(castsAndLayoutCopies, context);
  expect(draft.gain!.expected_ms).toBeCloseTo(0.4, 6);
  const { findings } = await rankedFindings(context, [castsAndLayoutCopies]);
  expect(findings[0]!.title).toContain(
    '2 casts take 40 % of every decode step, mostly from c10::Half to float',
  );
  expect(await firingRules(context)).toEqual(['casts_and_layout_copies']);
});

test('does not report masks made from integers, or one cast that was delayed', async () => {
  const cast = (durationUs: number, types: string[]): Call => ({
    name: 'aten::copy_',
    durationUs,
    class: 'copy',
    shapes: [[64], [64], []],
    types,
  });
  const mask = cast(200, ['bool', 'long int']);
  expect(await firingRules(await stepsOf(6, () => [mask, gemm(300)]))).toEqual([]);
  const activations = (step: number) => cast(step === 3 ? 6000 : 4, ['float', 'c10::BFloat16']);
  expect(await firingRules(await stepsOf(6, (step) => [activations(step), gemm(300)]))).toEqual([]);
});

test('a program with almost no operators in its marked steps is one stage', async () => {
  const context = await stepsOf(1, () => [gemm(20)]);
  expect((await windowClocks(context.operators!)).map(({ kind }) => kind)).toEqual(['decode']);
  const training = Array.from({ length: 50 }, () => gemm(100));
  const unmarked = await stepsOf(1, () => [gemm(20)], training);
  expect((await windowClocks(unmarked.operators!)).map(({ kind }) => kind)).toEqual(['outside']);
});

test('recognizes unfused attention by two GEMMs that share a score matrix with a reduction between them', async () => {
  const between: Call[] = [
    { name: 'aten::mul', durationUs: 100, class: 'elementwise' },
    { name: 'aten::sum', durationUs: 50, class: 'norm' },
    { name: 'aten::div', durationUs: 100, class: 'elementwise' },
  ];
  const scores = gemm(200, [
    [8, 16, 64],
    [8, 64, 128],
  ]);
  const values = (columns: number) =>
    gemm(200, [
      [8, 16, columns],
      [8, columns, 64],
    ]);
  const context = await stepsOf(6, () => [scores, ...between, values(128), gemm(500)]);
  // A fifth of the 250 µs between them remains.
  expect((await findingOf(eagerAttention, context)).gain!.expected_ms).toBeCloseTo(0.2, 6);
  expect(await firingRules(context)).toEqual(['eager_attention']);
  expect(await firingRules(await stepsOf(6, () => [scores, ...between, values(96), gemm(500)]))).toEqual([]);
});

test('does not report attention in one operator: rotary embeddings of two steps share no scores', async () => {
  const rotary = gemm(100, [
    [8, 64, 1],
    [8, 1, 1],
  ]);
  const fused: Call = {
    name: 'aten::_scaled_dot_product_flash_attention_for_cpu',
    durationUs: 300,
    class: 'attention',
  };
  const norm: Call = { name: 'aten::mean', durationUs: 100, class: 'norm' };
  expect(await firingRules(await stepsOf(6, () => [rotary, norm, fused, rotary, norm, fused]))).toEqual([]);
  // Similar GEMMs with fused attention or a layer's weights between them.
  const scores = gemm(200, [
    [8, 16, 64],
    [8, 64, 128],
  ]);
  const values = gemm(200, [
    [8, 16, 128],
    [8, 128, 64],
  ]);
  const weights: Call = { name: 'aten::addmm', durationUs: 10 };
  expect(await firingRules(await stepsOf(6, () => [scores, norm, values]))).toEqual(['eager_attention']);
  for (const operators of [fused, weights])
    expect(await firingRules(await stepsOf(6, () => [scores, norm, operators, values]))).toEqual([]);
});

test('reports host work at the same place in every step, but not a single delay', async () => {
  const steps = (waits: (step: number) => number) =>
    stepsOf(6, (step) => [
      gemm(500),
      { name: 'aten::argmax', durationUs: 20, class: 'sampling', after: waits(step) },
      gemm(300),
    ]);
  const context = await steps(() => 700);
  const draft = await findingOf(hostBound, context);
  expect(draft.gain!.expected_ms).toBeCloseTo(0.7, 6);
  expect(draft.cause).toContain('between aten::bmm and aten::argmax');
  expect(await firingRules(context)).toEqual(['host_bound']);
  expect(await firingRules(await steps((step) => (step === 2 ? 4000 : 5)))).toEqual([]);
  // Another process can delay a program, but it does not cause casts.
  const cast: Call = {
    name: 'aten::copy_',
    durationUs: 400,
    shapes: [[64], [64]],
    types: ['float', 'double'],
  };
  const busyMachine = (of: FindingContext) => ({ ...of, machine: { ...of.machine, busy: true } });
  const busy = busyMachine(
    await stepsOf(6, (step) => [gemm(500), cast, { ...gemm(300), after: step % 2 === 0 ? 700 : 5 }]),
  );
  const { findings: busyFindings, withheld, rules: outcomes } = await rankedFindings(busy, rules);
  expect(busyFindings.map(({ id }) => id)).toEqual(['casts_and_layout_copies:decode']);
  expect(withheld).toMatchObject([{ rule: 'host_bound', stage: 'decode', reason: { code: 'machine_busy' } }]);
  expect(outcomes.find(({ rule }) => rule === 'host_bound')!.outcome).toBe('withheld');
  // Nor does it delay every step at the same place: what the fastest steps have is certain.
  const certain = await findingOf(
    hostBound,
    busyMachine(await steps((step) => (step === 2 ? 4000 : 600 + 100 * step))),
  );
  expect(certain.noise).toBe(false);
  expect(certain.gain!.expected_ms).toBeCloseTo(0.65, 6);
});

test('reports code that is compiled in most steps, but not in the first step only', async () => {
  const steps = (compiles: (step: number) => boolean) =>
    stepsOf(6, (step) => [
      ...(compiles(step)
        ? [{ name: 'dynamo', durationUs: 3000, class: 'other', inside: ['frame', 'inductor_compile'] }]
        : []),
      gemm(1000),
    ]);
  const context = await steps((step) => step < 4);
  // Three of the six steps, without the first.
  expect((await findingOf(recompilation, context)).gain!.expected_ms).toBeCloseTo(1.5, 6);
  expect(await firingRules(context)).toEqual(['recompilation']);
  expect(await firingRules(await steps((step) => step === 0))).toEqual([]);
});

/** A GEMM of `rows` tokens with a weight, as PyTorch records it. */
const weighted = (durationUs: number, rows: number, outer = 512): Call => ({
  name: 'aten::mm',
  durationUs,
  shapes: [
    [rows, 512],
    [512, outer],
  ],
});

test("reports a mask that is created in every step and is larger than the step's tensors", async () => {
  const mask = (name: string, elements: number): Call => ({
    name,
    durationUs: 400,
    class: 'copy',
    shapes: [
      [elements, elements],
      [elements, elements],
    ],
  });
  const context = await stepsOf(6, () => [
    weighted(1000, 1),
    mask('aten::fill_', 1024),
    mask('aten::triu', 1024),
  ]);
  const draft = await findingOf(rebuiltTensors, context);
  expect(draft.gain!.expected_ms).toBeCloseTo(0.8, 9);
  expect(draft.title).toContain('2 writes of the same sizes');
  const copies = await stepsOf(6, () => [
    { ...mask('aten::copy_', 1024), types: ['float', 'float'] },
    {
      ...weighted(1000, 1),
      shapes: [
        [1, 1024],
        [1024, 1024],
      ],
    },
  ]);
  expect((await findingOf(rebuiltTensors, copies)).title).toContain('Copied weights: 1 copy of weights');
  // Activations are written in every step, and a mask only in the first two.
  const activations = await stepsOf(6, (step) => [
    weighted(1000, 1024),
    mask('aten::fill_', 724),
    ...(step < 2 ? [mask('aten::triu', 8192)] : []),
  ]);
  expect((await rebuiltTensors.find(activations)).outcome).toBe('not_fired');
});

test('reports steps that recompute all tokens, because their rows grow by the new tokens', async () => {
  const context = await stepsOf(6, (step) => [
    weighted(4000, 400 + 2 * step),
    weighted(1000, 400 + 2 * step),
  ]);
  const draft = await findingOf(noKvCache, context);
  // 405 rows of two sequences on average; time is proportional to the rows, down to 16 of them.
  expect(draft.gain!.expected_ms).toBeCloseTo(5 * (1 - 16 / 405), 6);
  expect(draft.title).toContain('203 tokens of each sequence');
  for (const rows of [() => 1, () => 256, (step: number) => 4 + step]) {
    const constantTime = await stepsOf(6, (step) => [weighted(4000, rows(step))]);
    expect((await noKvCache.find(constantTime)).outcome).toBe('not_fired');
  }
});

test('reports logits of every prompt token when only one row is sampled', async () => {
  const stages = [stage(0, 'prefill', 0, 1200), stage(1, 'decode', 1200, 1400, { step_index: 0 })];
  const call = (id: number, stageId: number, start: number, durationUs: number, shapes: number[][]) => ({
    op_id: id,
    name: 'aten::mm',
    class: 'gemm',
    op_type: 'cpu_op',
    stage_id: stageId,
    start_ns: start * us,
    dur_ns: durationUs * us,
    self_dur_ns: durationUs * us,
    input_shapes: JSON.stringify(shapes),
    input_types: '["float","float"]',
  });
  const hidden = [512, 512];
  const vocabulary = [512, 32_000];
  const ops = (rows: number) => [
    call(1, 0, 10, 300, [[100, 512], hidden]),
    call(2, 0, 400, 700, [[rows, 512], vocabulary]),
    call(3, 1, 1210, 20, [[1, 512], hidden]),
    call(4, 1, 1300, 50, [[1, 512], vocabulary]),
  ];
  const draft = await findingOf(promptLogits, await contextOf({ stages, ops: ops(100) }));
  expect(draft.gain!.expected_ms).toBeCloseTo(0.7 * 0.99, 6);
  expect(draft.evidence[0]!.text).toContain('decode: 1 row of 512 × 32000');
  expect((await promptLogits.find(await contextOf({ stages, ops: ops(1) }))).outcome).toBe('not_fired');
});

test('reports two GEMMs in a row with a small dimension between them, and not those with a norm between them', async () => {
  const mm = (durationUs: number, inner: number, outer: number): Call => ({
    name: 'aten::mm',
    durationUs,
    shapes: [
      [4, inner],
      [inner, outer],
    ],
  });
  const layer = (between: Call[]): Call[] => [
    mm(400, 256, 256),
    mm(50, 256, 64),
    ...between,
    mm(50, 64, 256),
    { name: 'aten::add', durationUs: 20, class: 'elementwise' },
  ];
  const layers = (between: Call[]) => stepsOf(6, () => [...layer(between), ...layer(between)]);
  const draft = await findingOf(unmergedAdapters, await layers([]));
  expect(draft.title).toContain('2 pairs of low-rank GEMMs');
  expect(draft.gain!.expected_ms).toBeCloseTo(0.2, 9);
  const norm: Call = { name: 'aten::native_layer_norm', durationUs: 10, class: 'norm' };
  expect((await unmergedAdapters.find(await layers([norm]))).outcome).toBe('not_fired');
});
