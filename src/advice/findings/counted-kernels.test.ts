import { expect, test } from 'vitest';
import type { CountersResult } from '../../model/documents/counters.js';
import { type CountedKernel, minKernelNs, savingsByStage } from './counted-kernels.js';
import type { FindingContext } from './rule.js';

const kernel = (duration_ns: number): CountedKernel => ({
  name: 'gemv',
  grid: '32,1,1',
  launches: 1000,
  duration_ns,
  saving: { low: 0.4, expected: 0.8, high: 0.9 },
});
const total = (duration_ns: number) =>
  ({ kernels: [{ total_duration_ns: { value: 1000 * duration_ns } }] }) as unknown as CountersResult;
const noTimeline = { scope: null, waterfalls: [] } as unknown as FindingContext;

test('more blocks cannot make a kernel shorter than a launch: 6.4 µs save at most 1.4 µs, 100 µs save in proportion', async () => {
  const short = await savingsByStage(noTimeline, total(6400), [kernel(6400)]);
  expect(short[0]!.expected_ms).toBeCloseTo((6400 - minKernelNs) / 1e3, 9);
  expect(short[0]!.high_ms).toBeCloseTo((6400 - minKernelNs) / 1e3, 9);
  const long = await savingsByStage(noTimeline, total(100_000), [kernel(100_000)]);
  expect(long[0]!.expected_ms).toBeCloseTo(80, 9);
  expect(await savingsByStage(noTimeline, total(5000), [kernel(5000)])).toEqual([]);
});
