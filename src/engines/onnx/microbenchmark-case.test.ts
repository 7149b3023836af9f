import { beforeAll, expect, test } from 'vitest';
import { kernelCase } from '../../llm/kernel-work.js';
import { testFolder } from '../../session/test-folder.js';
import { measureCase, type CaseSettings } from './microbenchmark-case.js';
import { erf } from './microbenchmark-reference.js';
import { loadOnnxRuntime, type OnnxRuntime } from './runtime.js';

let ort: OnnxRuntime;
beforeAll(async () => {
  ort = await loadOnnxRuntime();
});

const settings: CaseSettings = {
  runs: 10,
  max_runs: 20,
  max_seconds: 0.2,
  target_half_width: 0.5,
  check: true,
  graph: 'auto',
  threads: 1,
  rotateBytes: 64 * 1024,
  scratch: testFolder(),
  stopped: () => false,
};

const tiny = [
  kernelCase('gemm', 'float32', { m: 5, n: 7, k: 33 }),
  kernelCase('linear', 'float32', { tokens: 3, in_features: 16, out_features: 24, bias: 1 }),
  kernelCase('linear', 'float32', { tokens: 3, in_features: 16, out_features: 24, bias: 0 }),
  kernelCase('conv2d', 'float32', { batch: 2, channels: 3, out_channels: 4, height: 6, width: 5, kernel: 3 }),
  kernelCase('lstm', 'float32', { batch: 2, seq: 5, input: 6, hidden: 8, layers: 1 }),
  kernelCase('lstm', 'float32', { batch: 1, seq: 4, input: 6, hidden: 8, layers: 2 }),
  kernelCase('layernorm-gelu', 'float32', { tokens: 5, hidden: 32 }),
  kernelCase('attention', 'float32', {
    batch: 2,
    heads: 4,
    kv_heads: 2,
    head_dim: 16,
    new_tokens: 6,
    context: 6,
  }),
  kernelCase('attention', 'float32', {
    batch: 2,
    heads: 4,
    kv_heads: 2,
    head_dim: 16,
    new_tokens: 1,
    context: 9,
  }),
  kernelCase('attention', 'float32', {
    batch: 1,
    heads: 2,
    kv_heads: 2,
    head_dim: 16,
    new_tokens: 3,
    context: 8,
  }),
  kernelCase('softmax', 'float32', { rows: 4, columns: 50 }),
  kernelCase('rmsnorm', 'float32', { tokens: 4, hidden: 64, residual: 0 }),
  kernelCase('rmsnorm', 'float32', { tokens: 4, hidden: 64, residual: 1 }),
  kernelCase('swiglu', 'float32', { tokens: 4, intermediate: 48 }),
  kernelCase('rope', 'float32', { tokens: 7, heads: 4, kv_heads: 2, head_dim: 16 }),
  kernelCase('embedding', 'float32', { tokens: 6, vocab: 100, hidden: 16 }),
  kernelCase('sampling', 'float32', { batch: 3, vocab: 500 }),
];

test.each(tiny.map((kernel) => [kernel.case, kernel] as const))(
  '%s computes the same as the reference',
  async (_, tinyCase) => {
    const measured = await measureCase(ort, tinyCase, settings);
    expect(measured).toMatchObject({ outcome: 'measured', text: null, threads: 1 });
    expect(measured.max_error).toBeLessThan(3e-6);
    expect(measured.samples_ns.length).toBeGreaterThanOrEqual(3);
    expect(Math.min(...measured.samples_ns)).toBeGreaterThan(0);
    expect(measured.per_sample).toBeGreaterThan(1);
    expect(measured.end_ns).toBeGreaterThan(measured.t_ns);
  },
);

test('reports operations that a CPU does not have as unsupported', async () => {
  const half = await measureCase(ort, kernelCase('gemm', 'float16', { m: 2, n: 2, k: 2 }), settings);
  expect(half).toMatchObject({ outcome: 'unsupported', samples_ns: [] });
  const shape = { batch: 1, heads: 1, kv_heads: 1, head_dim: 16, new_tokens: 1, context: 4 };
  const flash = await measureCase(ort, kernelCase('attention', 'float32', shape, 'flash'), settings);
  expect(flash.text).toContain('no flash');
  // 3 heads over 2 key/value heads: the runtime rejects it with a reason.
  const odd = await measureCase(
    ort,
    kernelCase('attention', 'float32', { ...shape, heads: 3, kv_heads: 2 }),
    settings,
  );
  expect(odd).toMatchObject({ outcome: 'failed' });
  expect(odd.text).not.toBe('');
});

test('a stop ends a case without a sample', async () => {
  const stopped = await measureCase(ort, tiny[0]!, { ...settings, stopped: () => true });
  expect(stopped).toMatchObject({ outcome: 'stopped', samples_ns: [] });
});

test('erf of the reference', () => {
  // Abramowitz & Stegun, table 7.1; erfc(3.5) = 7.430983723414e-7.
  expect(erf(0.5)).toBeCloseTo(0.5204998778130465, 15);
  expect(erf(-1)).toBeCloseTo(-0.8427007929497149, 15);
  expect(1 - erf(3.5)).toBeCloseTo(7.430983723414e-7, 16);
});
