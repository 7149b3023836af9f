import { expect, test } from 'vitest';
import type { TraceResult } from '../../model/documents/trace.js';
import { nextSteps } from './next-steps.js';

type Parts = Parameters<typeof nextSteps>[0];

const commandsOf = (kernel: string): string[] => {
  const parts = {
    session: { id: 'one', name: null },
    phases: [],
    classes: [],
    operators: {},
    source: { gpu_used: true, timing: null },
    kernels: [{ name: kernel }],
  } as unknown as Pick<TraceResult, keyof Parts>;
  return nextSteps(parts).map(({ command }) => command);
};

test('a clean run is offered where it tells stages: not of vLLM, whose steps a benchmark times', () => {
  expect(commandsOf('void at::native::index_kernel<float>()')).toEqual([
    'inferscope run --evaluator none,nsys -- <command>',
  ]);
  // By a timeline of vLLM 0.26 on an H200.
  const name =
    'void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>()';
  expect(commandsOf(name)).toEqual([expect.stringMatching(/^inferscope bench latency --engine vllm /)]);
});
