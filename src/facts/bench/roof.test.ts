import { expect, test } from 'vitest';
import type { BenchPointResult } from '../../model/documents/bench.js';
import { expectClose } from '../test-rows.js';
import { analyzeBench } from './bench.js';
import { usesGraphs } from './roof.js';
import { gpuWorkload, planOf } from './test-bench.js';
import { b2, gpuSession } from './test-bench-session.js';

test("MFU against the data sheet's dense peak, and the expected range", async () => {
  const [variant] = (await analyzeBench(await gpuSession())).data.variants;
  const [first, second] = variant!.points as [BenchPointResult, BenchPointResult];
  // Linear layers 2 · (12288 + 36864) and lm_head 32768 weights; attention 512 FLOP per key over two layers, 5.5 keys.
  const flops = 2 * (2 * (2 * (12_288 + 36_864) + 32_768) + 512 * 5.5);
  expectClose(first.model_utilization.decode_mfu, flops / 7.875e-3 / 989e12);
  expect(first.model_utilization.decode_bound).toBe('memory');
  const { tpot, ttft } = first.expected;
  if (!('low' in tpot) || !('low' in ttft)) throw new Error('no range');
  // At least the 131 392 parameters of 2 bytes at 4.8 TB/s.
  expect(tpot.low).toBeGreaterThan((131_392 * 2e3) / 4.8e12);
  expect(tpot.low).toBeLessThan((1.2 * 131_392 * 2e3) / 4.8e12);
  // Every operation is memory-bound here, so their sum equals the whole.
  expectClose(tpot.high, tpot.low / 0.58 + 0.25);
  expect(tpot.explanation).toContain('10 launches (counted in a decode step)');
  // Nothing was counted at batch 4: 42 launches per layer, two layers.
  const batch4 = second.expected.tpot;
  if (!('low' in batch4)) throw new Error('no range');
  expectClose(batch4.high, batch4.low / 0.58 + (84 * 25) / 1000);
  expect(variant!.answers.find(({ id }) => id === 'latency')!.answer).toContain('TPOT is above the');
});

test('each kernel of a CUDA graph costs a node instead of a launch', async () => {
  const plan = planOf([b2]);
  plan.variants[0]!.engine_args = { mode: 'cudagraph' };
  const { data } = await analyzeBench(await gpuSession({ artifacts: { 'bench-plan': plan } }));
  const { tpot, ttft } = data.variants[0]!.points[0]!.expected;
  if (!('low' in tpot) || !('low' in ttft)) throw new Error('no range');
  expectClose(tpot.high, tpot.low / 0.58 + (10 * 1.5) / 1000);
  expect(tpot.explanation).toContain('10 nodes of a CUDA graph (counted in a decode step) × 1.5 µs');
  expectClose(ttft.high, ttft.low / 0.58 + (10 * 25) / 1000);
  const vllm = gpuWorkload({ engine: { name: 'vllm', version: null, options: {} } });
  expect(usesGraphs(vllm, {})).toBe(true);
  expect(usesGraphs(vllm, { enforce_eager: 'True' })).toBe(false);
  expect(usesGraphs(gpuWorkload(), { mode: 'compile' })).toBe(false);
});
