import { expect, test } from 'vitest';
import { sweepCases, usualSizes } from './kernel-cases.js';
import { modelCases } from './kernel-model.js';
import { kernelCase, kernelWork } from './kernel-work.js';
import { presetArchitecture } from './presets.js';
import { floatStorage } from './storage.js';
import { stageWork } from './work.js';
import { totalWork } from './work-totals.js';

test('FLOPs and bytes of each kernel, by hand', () => {
  const work = (...args: Parameters<typeof kernelWork>) => {
    const { flops, bytes } = kernelWork(...args);
    return [flops, bytes];
  };
  // 2·2·3·4 = 48; (8 + 12 + 6)·2 bytes
  expect(work('gemm', 'bfloat16', { m: 2, n: 3, k: 4 })).toEqual([48, 52]);
  // The result of float8 is bfloat16: 8 + 12 + 2·6; of int8 it is int32: 8 + 12 + 4·6.
  expect(work('gemm', 'float8', { m: 2, n: 3, k: 4 })).toEqual([48, 32]);
  expect(work('gemm', 'int8', { m: 2, n: 3, k: 4 })).toEqual([48, 44]);
  expect(work('linear', 'float32', { tokens: 2, in_features: 4, out_features: 3, bias: 1 })).toEqual([
    48, 116,
  ]);
  // Same padding: 5 × 5 pixels of 2 channels from 3 channels, 3 × 3: 2·25·2·3·9; 75 + 54 + 50 elements.
  expect(
    work('conv2d', 'float32', { batch: 1, channels: 3, out_channels: 2, height: 5, width: 5, kernel: 3 }),
  ).toEqual([2700, 716]);
  // Gates 4·3·(2 + 3) = 60 weights: 2·1·4·60; x 8, weights 60, biases 24, outputs 12, states 6.
  expect(work('lstm', 'float32', { batch: 1, seq: 4, input: 2, hidden: 3, layers: 1 })).toEqual([480, 440]);
  // A second layer reads 3 instead of 2: 72 weights more.
  expect(work('lstm', 'float32', { batch: 1, seq: 4, input: 2, hidden: 3, layers: 2 })[0]).toBe(8 * 132);
  expect(work('layernorm-gelu', 'float16', { tokens: 2, hidden: 4 })).toEqual([96, 48]);
  expect(work('softmax', 'float32', { rows: 2, columns: 4 })).toEqual([40, 64]);
  expect(work('rmsnorm', 'float32', { tokens: 2, hidden: 4, residual: 0 })).toEqual([32, 80]);
  expect(work('rmsnorm', 'float32', { tokens: 2, hidden: 4, residual: 1 })).toEqual([40, 144]);
  expect(work('swiglu', 'float32', { tokens: 2, intermediate: 4 })).toEqual([32, 96]);
  expect(work('rope', 'float32', { tokens: 2, heads: 2, kv_heads: 1, head_dim: 4 })).toEqual([72, 192]);
  expect(work('sampling', 'float32', { batch: 2, vocab: 8 })).toEqual([16, 80]);
  // 3 tokens of 4: read, written, and 3 ids; the table of 10 rows is held.
  const embedding = kernelWork('embedding', 'float32', { tokens: 3, vocab: 10, hidden: 4 });
  expect(embedding).toEqual({ flops: 0, bytes: 120, footprintBytes: 232 });
});

test('attention counts only causal query-key pairs', () => {
  const shape = { batch: 2, heads: 4, kv_heads: 2, head_dim: 8 };
  // Prefill of 3: 1 + 2 + 3 = 6 pairs; queries and outputs 2·3·4·8 each, keys and values 2·(2·3·2·8).
  const prefill = kernelWork('attention', 'float16', { ...shape, new_tokens: 3, context: 3 });
  expect(prefill).toMatchObject({ flops: 4 * 4 * 8 * 2 * 6, bytes: 2 * (192 + 192 + 192) });
  // Decode over 5 keys: 5 pairs.
  const decode = kernelWork('attention', 'float16', { ...shape, new_tokens: 1, context: 5 });
  expect(decode).toMatchObject({ flops: 4 * 4 * 8 * 2 * 5, bytes: 2 * (64 + 64 + 320) });
});

test('the operations of Llama 3.1 8B equal the list made by hand', () => {
  const architecture = presetArchitecture('llama-3.1-8b');
  const storage = floatStorage('bfloat16');
  const { steps, cases } = modelCases(architecture, storage, { batchSizes: [8], contextLens: [128] });
  expect(steps.map(({ phase }) => phase)).toEqual(['prefill', 'decode']);
  const decode = steps[1]!;
  const opNamed = (name: string) => decode.ops.find((op) => op.name === name);
  // hidden 4096, 32 heads and 8 key/value heads of 128, intermediate 14336, vocabulary 128256, 32 layers.
  const gemms: [name: string, n: number, k: number, count: number][] = [
    ['qkv_proj', 6144, 4096, 32],
    ['o_proj', 4096, 4096, 32],
    ['gate_up_proj', 28672, 4096, 32],
    ['down_proj', 4096, 14336, 32],
    ['lm_head', 128256, 4096, 1],
  ];
  for (const [name, n, k, count] of gemms)
    expect(opNamed(name)).toMatchObject({ case: `gemm bfloat16 8x${n}x${k}`, count, flops: 2 * 8 * n * k });
  expect(opNamed('attention')).toMatchObject({ case: 'attention bfloat16 8x32x8x128x1x129', count: 32 });
  expect(opNamed('rotary')).toMatchObject({ case: 'rope bfloat16 8x32x8x128', count: 32 });
  expect(opNamed('swiglu')).toMatchObject({ case: 'swiglu bfloat16 8x14336', count: 32 });
  expect(opNamed('embedding')).toMatchObject({ case: 'embedding bfloat16 8x128256x4096', count: 1 });
  // The first norm of the model has no addition.
  const norms = decode.ops.filter(({ case: id }) => id?.startsWith('rmsnorm'));
  expect(norms.map(({ name, count }) => [name, count])).toEqual([
    ['input_norm', 1],
    ['post_attention_norm', 32],
    ['input_norm', 31],
    ['final_norm', 1],
  ]);
  expect(decode.ops.every(({ reason }) => reason === null)).toBe(true);
  expect(new Set(cases.map((testCase) => testCase.case)).size).toBe(cases.length);

  // Weighted by count, the GEMM and attention cases sum to the whole step.
  for (const { phase, batch_size, new_tokens, context_tokens, ops } of steps) {
    const shape = { phase, batchSize: batch_size, newTokens: new_tokens, contextTokens: context_tokens };
    const total = totalWork(stageWork(architecture, shape, storage));
    const byCase = new Map(cases.map((testCase) => [testCase.case, testCase]));
    const matrixOps = ops.filter(({ case: id }) => /^(gemm|attention) /.test(id ?? ''));
    expect(matrixOps.reduce((sum, op) => sum + op.count * byCase.get(op.case!)!.flops, 0)).toBe(total.flops);
    // The extra operation is sampling, which is outside the model.
    expect(ops.reduce((sum, op) => sum + op.count, 0)).toBe(total.ops + 1);
  }
});

test('experts, latent attention and windows inside a prompt say why they are not measured', () => {
  const reasons = (preset: string, context: number) =>
    modelCases(presetArchitecture(preset), floatStorage('bfloat16'), {
      batchSizes: [1],
      contextLens: [context],
    }).steps.flatMap(({ phase, ops }) =>
      ops.filter((op) => op.case === null).map((op) => `${phase} ${op.name}: ${op.reason}`),
    );
  const mixtral = reasons('mixtral-8x7b', 64);
  expect(mixtral.some((text) => text.startsWith('decode experts_gate_up_proj: 2 GEMMs in one'))).toBe(true);
  expect(mixtral.some((text) => text.includes('swiglu'))).toBe(false);
  const mistral = reasons('mistral-7b', 8192);
  expect(mistral).toEqual([
    'prefill attention: a window of 4096 inside 8192 new tokens: the suite measures full causal attention',
  ]);
});

test("a sweep has every combination of a kernel's sizes once", () => {
  const sweep = {
    batchSizes: [1, 8],
    seqLens: [16, 32],
    hiddenSizes: [64],
    dtypes: ['float32', 'bfloat16'],
    backends: [null],
  };
  const { cases, points } = sweepCases(['sampling', 'softmax'], sweep, 100);
  const ids = cases.map((testCase) => testCase.case);
  // Sampling has no sequence length: 2 batch sizes × 2 dtypes; softmax has 16 and 32 tokens at batch 1, 128 and 256 at
  // 8.
  expect(ids).toHaveLength(4 + 8);
  expect(points.find((point) => point.case === 'softmax bfloat16 256x64')).toEqual({
    case: 'softmax bfloat16 256x64',
    series: 'softmax',
    batch_size: 8,
    seq_len: 32,
    hidden_size: 64,
    dtype: 'bfloat16',
    backend: null,
  });
  expect(points.find(({ series }) => series === 'sampling')).toMatchObject({
    seq_len: null,
    hidden_size: null,
  });
  const backends = sweepCases(
    ['attention'],
    { ...sweep, dtypes: ['float16'], backends: ['flash', 'math'] },
    100,
  );
  // Prefill and decode, each at 2 batch sizes and 2 lengths with 2 backends.
  expect(backends.cases).toHaveLength(16);
  expect(new Set(backends.points.map(({ series }) => series))).toEqual(
    new Set(['attention prefill', 'attention decode']),
  );
  expect(sweepCases(['rmsnorm'], { ...sweep, dtypes: ['float8'] }, 100).cases).toEqual([]);
  const narrow = sweepCases(['linear'], { ...sweep, dtypes: ['float8'] }, 100).cases;
  expect(narrow.every(({ params }) => params['bias'] === 0)).toBe(true);
  const { batchSize, seqLen, hiddenSize, vocab } = usualSizes.gpu;
  const usual = { ...sweep, batchSizes: [batchSize], seqLens: [seqLen], hiddenSizes: [hiddenSize] };
  expect(sweepCases(['gemm'], usual, vocab).cases[0]).toEqual(
    kernelCase('gemm', 'float32', { m: 4096, n: 4096, k: 4096 }),
  );
});
