import { expect, test } from 'vitest';
import type { KernelCase } from '../../model/kernels.js';
import type { MicrobenchmarkLine } from '../../model/record.js';
import { gpuRoofsOf } from './gpu-roofs.js';
import type { PlannedDevice } from './gpu-plan.js';
import { comparisonCases, searchRoofs } from './search.js';
import { measuredLine, unmeasuredLine } from './test-lines.js';

const plan: PlannedDevice = {
  device: 'cuda:0',
  name: 'NVIDIA H200',
  computeCapability: '9.0',
  memoryBytes: 150e9,
  smCount: 132,
};
const facts = { ...plan, index: 0, l2Bytes: null, powerLimitW: 700, pciId: null };
const noSensors = () => ({ sm_clock_mhz: null, power_w: null, throttled_by: [] });

/** A device with the fastest GEMMs at a side of 6144, which only the second round tries; it has no float8. */
function lineOf(kernelCase: KernelCase): MicrobenchmarkLine {
  if (kernelCase.dtype === 'float8')
    return unmeasuredLine(kernelCase, 'unsupported', 'this torch has no float8 here');
  if (kernelCase.flops === 0) return measuredLine(kernelCase, [(kernelCase.bytes / 4e12) * 1e9]);
  const { m, n, k } = kernelCase.params as { m: number; n: number; k: number };
  const flat = m === n && n === k ? 1 : 2;
  const rate = 800e12 / flat / (1 + Math.abs(Math.log2(m / 6144)));
  return measuredLine(kernelCase, [(kernelCase.flops / rate) * 1e9]);
}

test('finds the fastest size between those of the first round; dtypes without a kernel get no second round', async () => {
  const rounds: Record<string, KernelCase[]> = {};
  const run = (round: string, cases: KernelCase[]) => {
    rounds[round] = cases;
    return Promise.resolve(cases.map(lineOf));
  };
  const lines = await searchRoofs(plan, run, new AbortController().signal);
  expect(Object.keys(rounds)).toEqual(['first', 'refined']);
  expect(rounds['refined']!.every(({ kernel }) => kernel === 'gemm')).toBe(true);
  expect(rounds['refined']!.some(({ dtype }) => dtype === 'float8')).toBe(false);
  const { compute } = gpuRoofsOf(facts, 'full', lines, noSensors);
  const best = compute.find(({ dtype }) => dtype === 'bfloat16')!;
  expect([best.m, best.n, best.k]).toEqual([6144, 6144, 6144]);
  expect(best.flops_per_s / 800e12).toBeCloseTo(1, 6);
  expect(compute.map(({ dtype }) => dtype)).toEqual(['float32', 'tfloat32', 'float16', 'bfloat16', 'int8']);

  // Another GPU of the same name runs only the fastest cases and two bandwidths, with the same sizes.
  const cases = comparisonCases(lines, compute);
  expect(cases.map(({ kernel }) => kernel).sort()).toEqual(['copy', ...Array(5).fill('gemm'), 'read']);
  expect(cases.find(({ dtype }) => dtype === 'bfloat16')).toEqual(
    rounds['refined']!.find((kernelCase) => kernelCase.case === best.case),
  );
});

test('Ctrl-C in the first round keeps what was measured', async () => {
  const controller = new AbortController();
  const calls: string[] = [];
  const lines = await searchRoofs(
    plan,
    (round, cases) => {
      calls.push(round);
      controller.abort();
      return Promise.resolve(cases.map(lineOf));
    },
    controller.signal,
  );
  expect(calls).toEqual(['first']);
  expect(gpuRoofsOf(facts, 'full', lines, noSensors).compute.length).toBe(5);
});
