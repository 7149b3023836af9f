import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../model/installation.js';
import { chooseKernels } from './hot-kernels.js';
import { kernelFunction } from '../../vocabulary/kernel-label.js';
import { ncuArguments, ncuBounds } from './ncu-arguments.js';
import type { NcuOptions } from './run-options.js';
import { nsysArguments } from './nsys-arguments.js';

const stats = (name: string, report: string) =>
  readFileSync(
    join(packageRoot(), 'test/fixtures/nsys-2025.3.1-h200/nsys-stats', name, `out_${report}.csv`),
    'utf8',
  );
const full: NcuOptions = {
  set: 'full',
  launchCount: 1,
  kernel: null,
  nvtx: [],
  profilerApi: false,
  args: [],
};

test("converts names to ncu's function names", () => {
  expect(
    kernelFunction(
      'void at::native::vectorized_elementwise_kernel<(int)8, at::native::<unnamed>::silu_kernel(at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const, std::array<char *, (unsigned long)2>>(int, T2, T3)',
    ),
  ).toBe('vectorized_elementwise_kernel');
  expect(kernelFunction('nvjet_sm90_hsh_16x64_64x16_4x1_v_bz_TNN')).toBe(
    'nvjet_sm90_hsh_16x64_64x16_4x1_v_bz_TNN',
  );
  expect(kernelFunction('void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)')).toBe(
    'softmax_warp_forward',
  );
});

test('finds hot kernels of the stages of an H200 capture, without loading and warm-up', () => {
  const choice = chooseKernels(
    stats('tiny-nsys', 'nvtx_kern_sum') + stats('tiny-nsys', 'cuda_gpu_kern_sum'),
  )!;
  expect(choice.source).toBe('by nsys, of decode, prefill, sampling');
  // Summed by hand from the CSV: the largest of decode, and the SDPA kernel of prefill (eighth there).
  for (const kernel of [
    'vectorized_elementwise_kernel',
    'nvjet_sm90_hsh_8x64_64x16_4x1_v_bz_TNN',
    'nvjet_sm90_hsh_16x64_64x16_4x1_v_bz_TNN',
    'cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0',
  ])
    expect(choice.names).toContain(kernel);
  expect(choice.names).not.toContain('distribution_elementwise_grid_stride_kernel');
  expect(choice.names.length).toBeLessThanOrEqual(24);
});

test('without stages uses the hottest kernels of the run; without kernels returns null', () => {
  const choice = chooseKernels(stats('tiny-nsys', 'cuda_gpu_kern_sum'))!;
  expect(choice.source).toBe('by nsys, of the whole run');
  expect(chooseKernels('')).toBeNull();
});

test('limits the kernels of ncu but not its metrics, and describes the limits', () => {
  const choice = { names: ['gemm_kernel', 'a.b'], source: 'by nsys, of decode' };
  const args = ncuArguments('/s/ncu', full, choice);
  expect(args).toContain('--set=full');
  expect(args).toContain('--clock-control=none');
  expect(args.slice(args.indexOf('--kernel-name'))[1]).toBe('regex:(^|::)(gemm_kernel|a\\.b)$');
  expect(ncuBounds(full, choice)).toMatch(/one launch of each launch size of the 2 hottest .* --set full/);
  expect(ncuArguments('/s/ncu', { ...full, kernel: 'flash' }, choice)).toContain('regex:flash');
  expect(ncuBounds({ ...full, nvtx: ['decode/'] }, null)).toMatch(
    /all kernels .*inside NVTX ranges decode\//,
  );
});

test('nsys records graph nodes, and ranges on request', () => {
  const args = nsysArguments('/s/nsys', { trace: ['cublas'], captureRange: null, args: ['--stats=false'] });
  expect(args).toEqual([
    'profile',
    '--trace=cuda,nvtx,cublas',
    '--cuda-graph-trace=node',
    '--sample=none',
    '--cpuctxsw=none',
    '--output=/s/nsys',
    '--force-overwrite=true',
    '--stats=false',
  ]);
  // nsys rejects an option that is given twice.
  const options = { trace: [], captureRange: null, args: ['--cuda-graph-trace=graph', '-s', 'cpu'] };
  expect(nsysArguments('/s/nsys', options).filter((arg) => /graph-trace|^-s|--sample/.test(arg))).toEqual([
    '--cuda-graph-trace=graph',
    '-s',
  ]);
  // OS calls and context switches together show why a thread left its core.
  expect(nsysArguments('/s/nsys', { trace: ['osrt'], captureRange: null, args: [] })).toContain(
    '--cpuctxsw=process-tree',
  );
  const range = { trace: [], captureRange: { kind: 'nvtx', name: 'decode' } as const, args: [] };
  expect(nsysArguments('/s/nsys', range)).toContain('--nvtx-capture=decode@*');
});
