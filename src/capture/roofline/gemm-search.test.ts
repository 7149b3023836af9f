import { expect, test } from 'vitest';
import { coarseGemms, gemmBytes, gemmFlops, type Gemm, neighborGemms } from './gemm-search.js';
import { firstCases, gemmDtypes, gemmLimits, type PlannedDevice } from './gpu-plan.js';

const h200: PlannedDevice = {
  device: 'cuda:0',
  name: 'NVIDIA H200',
  computeCapability: '9.0',
  memoryBytes: 150e9,
  smCount: 132,
};
const limits = gemmLimits(h200);
const size = ({ m, n, k }: Gemm) => `${m}x${n}x${k}`;
const square = (dtype: Gemm['dtype'], side: number): Gemm => ({ dtype, m: side, n: side, k: side });

test('sizes of the first round take much longer than a launch and much less than a minute', () => {
  // 2·16384³ = 8.8e12: 131 ms at 67 TFLOP/s, 8.9 ms at 989. 2·1024³ = 2.1e9: 32 µs and 2.2 µs.
  expect(coarseGemms('float32', limits).map(size)).toEqual([
    '1024x1024x1024',
    '2048x2048x2048',
    '4096x4096x4096',
    '8192x8192x8192',
    '4096x14336x4096',
  ]);
  expect(coarseGemms('bfloat16', limits).map(size)).toEqual([
    '2048x2048x2048',
    '4096x4096x4096',
    '8192x8192x8192',
    '16384x16384x16384',
    '4096x14336x4096',
    '8192x28672x8192',
  ]);
});

test('leaves out matrices larger than a sixth of the memory', () => {
  const small = gemmLimits({ ...h200, memoryBytes: 8e9 });
  // bfloat16 16384³: 3 · 2^28 · 2 = 1.6 GB > 8/6 GB
  expect(coarseGemms('bfloat16', small).map(size)).not.toContain('16384x16384x16384');
  expect(coarseGemms('bfloat16', small).map(size)).toContain('8192x8192x8192');
});

test('the second round tries the neighbors of the fastest size', () => {
  // 8192/128 = 64 rows of tiles, 8192/256 = 32 columns: 66 × 32 = 2112 tiles are 16 whole waves of 132 SMs.
  expect(neighborGemms(square('bfloat16', 8192), [], limits).map(size)).toEqual([
    '6144x6144x6144',
    '12288x12288x12288',
    '8192x8192x4096',
    '8192x8192x16384',
    '8448x8192x8192',
  ]);
});

test('tries each size once per dtype', () => {
  const best = square('bfloat16', 8192);
  const tried = [square('bfloat16', 6144), square('float16', 12288)];
  const sizes = neighborGemms(best, tried, limits).map(size);
  expect(sizes).not.toContain('6144x6144x6144');
  expect(sizes).toContain('12288x12288x12288');
});

test('without the number of SMs there is no height of whole waves', () => {
  const sizes = neighborGemms(square('bfloat16', 8192), [], { ...limits, smCount: null }).map(size);
  expect(sizes).toHaveLength(4);
});

test('FLOPs and bytes: float8 gives bfloat16 (2 bytes), int8 gives int32 (4)', () => {
  const gemm = { m: 2, n: 3, k: 5 };
  expect(gemmFlops({ dtype: 'float32', ...gemm })).toBe(60);
  expect(gemmBytes({ dtype: 'float32', ...gemm })).toBe((10 + 15 + 6) * 4);
  expect(gemmBytes({ dtype: 'float8', ...gemm })).toBe(10 + 15 + 6 * 2);
  expect(gemmBytes({ dtype: 'int8', ...gemm })).toBe(10 + 15 + 6 * 4);
});

test('selects dtypes by compute capability', () => {
  const dtypesOf = (computeCapability: string | null) => gemmDtypes({ ...h200, computeCapability });
  expect(dtypesOf('7.0')).toEqual(['float32', 'float16']);
  expect(dtypesOf('7.5')).toEqual(['float32', 'float16', 'int8']);
  expect(dtypesOf('8.0')).toEqual(['float32', 'tfloat32', 'float16', 'bfloat16', 'int8']);
  for (const known of ['8.9', '9.0', '10.0', '12.0', null])
    expect(dtypesOf(known)).toEqual(['float32', 'tfloat32', 'float16', 'bfloat16', 'float8', 'int8']);
});

test('cases have unique names, copies count both directions, arrays exceed the L2', () => {
  const cases = firstCases(h200);
  expect(new Set(cases.map((kernelCase) => kernelCase.case)).size).toBe(cases.length);
  const copies = cases.filter(({ kernel }) => kernel === 'copy');
  expect(copies.length).toBeGreaterThan(1);
  for (const { bytes, params } of copies) {
    expect(bytes).toBe(2 * params['bytes']!);
    expect(params['bytes']).toBeGreaterThan(4 * 126e6);
  }
  expect(cases.find(({ kernel }) => kernel === 'triad')).toMatchObject({ flops: 0 });
});
