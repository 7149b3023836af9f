import { expect, test } from 'vitest';
import { kernelWork } from '../../llm/kernel-work.js';
import type { KernelName } from '../../model/kernels.js';
import { crossValidate } from './cross-validation.js';
import { affineFit } from './interpolate.js';
import { type MeasuredKernel, withoutDuplicates } from './kernel-table.js';
import { kernelTime, type Roof } from './kernel-time.js';

/** 100 TFLOP/s, 1 TB/s. */
const roof: Roof = ({ kernel, flops, bytes }) =>
  Math.max(kernel === 'gemm' || kernel === 'attention' ? flops / 100e12 : 0, bytes / 1e12) * 1e9;

function measured(
  kernel: KernelName,
  params: Record<string, number>,
  ns: number,
  backend: string | null = null,
): MeasuredKernel {
  const { flops, bytes } = kernelWork(kernel, 'float16', params);
  const name = `${kernel} ${Object.values(params).join('x')}`;
  return {
    case: name,
    kernel,
    backend,
    dtype: 'float16',
    params,
    flops,
    bytes,
    ns,
    cpu: false,
    interval: null,
  };
}

const gemm = (m: number, n: number, k: number, ns = 0) => measured('gemm', { m, n, k }, ns);

test('meets a power law over m exactly, at and between the cases', () => {
  const law = (m: number) => 500 * m ** 0.37;
  const table = [1, 8, 64].map((m) => gemm(m, 4096, 4096, law(m)));
  expect(kernelTime(table, gemm(8, 4096, 4096), roof)).toEqual({ ns: law(8), method: 'measured' });
  for (const m of [2, 5, 31]) {
    const found = kernelTime(table, gemm(m, 4096, 4096), roof)!;
    expect(found.method).toBe('interpolated');
    expect(found.ns).toBeCloseTo(law(m), 6);
  }
});

test('extrapolates beyond the measured range at the efficiency of its end, and says so', () => {
  const last = gemm(4096, 4096, 4096, 2 * roof(gemm(4096, 4096, 4096)));
  const requested = gemm(16_384, 4096, 4096);
  const found = kernelTime([gemm(1, 4096, 4096, 40_000), last], requested, roof)!;
  expect(found.method).toBe('extrapolated');
  expect(found.ns).toBeCloseTo(2 * roof(requested), 3);
  // A tenth more still counts as interpolated.
  expect(kernelTime([last], gemm(4500, 4096, 4096), roof)?.method).toBe('interpolated');
});

test('times other shapes by a line over roofline time between the two nearest', () => {
  // t = 3 µs + 1.25 × roof at m = 8 for three matrices; a fourth in between, and one smaller than all.
  const law = (kernel: MeasuredKernel) => 3000 + 1.25 * roof(kernel);
  const shapes: [number, number][] = [
    [2048, 2048],
    [4096, 4096],
    [16_384, 4096],
  ];
  const table = shapes.map(([n, k]) => ({ ...gemm(8, n, k), ns: law(gemm(8, n, k)) }));
  const between = gemm(8, 5120, 4096);
  expect(kernelTime(table, between, roof)!.method).toBe('interpolated');
  expect(kernelTime(table, between, roof)!.ns).toBeCloseTo(law(between), 3);
  const small = gemm(8, 256, 2048);
  expect(kernelTime(table, small, roof)!.method).toBe('extrapolated');
  expect(kernelTime(table, small, roof)!.ns).toBeCloseTo(law(small), 3);
});

test('interpolates attention over batch and context, and does not use prompts for decode steps', () => {
  const heads = { heads: 32, kv_heads: 8, head_dim: 128 };
  const law = (batch: number, context: number) => 2 * batch ** 0.8 * context ** 0.9;
  const caseOf = (batch: number, context: number, ns = 0) =>
    measured('attention', { batch, ...heads, new_tokens: 1, context }, ns);
  const prompt = measured('attention', { batch: 4, ...heads, new_tokens: 512, context: 512 }, 1);
  const table = [1, 32].flatMap((batch) =>
    [128, 2048].map((context) => caseOf(batch, context, law(batch, context))),
  );
  const found = kernelTime([...table, prompt], caseOf(8, 700), roof)!;
  expect(found.method).toBe('interpolated');
  expect(found.ns).toBeCloseTo(law(8, 700), 6);
  expect(kernelTime([prompt], caseOf(8, 700), roof)).toBeNull();
});

test('kernels that only move bytes share one line, by the number of kernels per case', () => {
  // A kernel takes 2 µs and moves 1 TB/s. PyTorch's swiglu is two kernels, its rotation ten, its RMSNorm with an
  // addition two.
  const x = 4096 * 4096 * 2;
  const table = [
    measured('swiglu', { tokens: 4096, intermediate: 4096 }, 2 * 2000 + (5 * x) / 1e3),
    measured('rmsnorm', { tokens: 4096, hidden: 4096, residual: 1 }, 2 * 2000 + (5 * x) / 1e3),
    measured('rope', { tokens: 1, heads: 32, kv_heads: 8, head_dim: 128 }, 10 * 2000 + (10 * 5120 * 2) / 1e3),
  ];
  const requested = { kernel: 'elementwise', dtype: 'float16', params: {}, flops: 0, bytes: 1e6 };
  expect(kernelTime(table, requested, roof)!.ns).toBeCloseTo(3000, 1);
  expect(kernelTime(table, { ...requested, bytes: 0 }, roof)!.ns).toBeCloseTo(2000, 1);
  expect(kernelTime(table, { ...requested, dtype: 'float32' }, roof)).toBeNull();
});

test('the leave-one-out error is 0 on a power law, and shows an outlier', () => {
  const law = (m: number) => 500 * m ** 0.5;
  const sizes = [1, 4, 16, 64, 256];
  const even = sizes.map((m) => gemm(m, 4096, 4096, law(m)));
  const inner = crossValidate(even, roof);
  expect(inner).toHaveLength(1);
  expect(inner[0]).toMatchObject({ kernel: 'gemm', cases: 5 });
  // The three inner cases are exact; the ends are extrapolated at their neighbor's efficiency.
  expect(inner[0]!.median_error).toBeCloseTo(0, 9);
  const odd = even.map((kernel) => (kernel.params['m'] === 16 ? { ...kernel, ns: 2 * kernel.ns } : kernel));
  // Its neighbors predict half of its measured time; their own errors, caused by it, are smaller.
  expect(crossValidate(odd, roof)[0]!.median_error).toBeGreaterThan(0.3);
});

test("among duplicates the framework's own choice counts, else the fastest", () => {
  const caseOf = (ns: number, backend: string | null) =>
    measured(
      'attention',
      { batch: 1, heads: 8, kv_heads: 8, head_dim: 64, new_tokens: 1, context: 128 },
      ns,
      backend,
    );
  expect(withoutDuplicates([caseOf(5, 'flash'), caseOf(9, null), caseOf(3, 'cudnn')])[0]!.ns).toBe(9);
  expect(withoutDuplicates([caseOf(5, 'flash'), caseOf(3, 'cudnn'), caseOf(4, 'math')])[0]!.ns).toBe(3);
});

test('the line weights relative errors and never falls', () => {
  expect(affineFit([])).toBeNull();
  const exact = affineFit([1, 10, 1000].map((x) => ({ x, y: 5 + 2 * x })))!;
  expect(exact.offset).toBeCloseTo(5, 9);
  expect(exact.slope).toBeCloseTo(2, 9);
  expect(
    affineFit([
      { x: 1, y: 5 },
      { x: 2, y: 4 },
    ])!.slope,
  ).toBe(0);
});
