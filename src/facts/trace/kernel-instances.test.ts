import { expect, test } from 'vitest';
import { traceScope } from '../derived/scope.js';
import { readKernelOrigins, readNamedKernels } from './kernel-instances.js';
import { kernel, type Rows, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

const rows: Rows = {
  stages: [stage(1, 'decode', 0, 300)],
  kernels: [
    kernel(1, 10, 10, { name: 'a' }),
    kernel(1, 30, 30, { name: 'a' }),
    kernel(1, 70, 30, { name: 'a' }),
    kernel(null, 400, 5, { name: 'b' }),
  ],
};

test('gives durations of each name, their bins and the longest instance', async () => {
  const session = await sessionOf(rows);
  const scope = await traceScope(await session.connect(), session.manifest);
  const [first, second, ...others] = await readNamedKernels(scope);
  expect(first).toMatchObject({
    name: 'a',
    count: 3,
    share: 70 / 75,
    total_ns: 70 * us,
    min_ns: 10 * us,
    median_ns: 30 * us,
  });
  expect(first!.bins.reduce((sum, { count }) => sum + count, 0)).toBe(3);
  expect([first!.bins[0]!.count, first!.bins.at(-1)!.count]).toEqual([1, 2]);
  expect([first!.bins[0]!.from_ns, first!.bins.at(-1)!.to_ns]).toEqual([10 * us, expect.closeTo(30 * us)]);
  expect(first!.longest.end_ns - first!.longest.start_ns).toBe(30 * us);
  expect(second).toMatchObject({ name: 'b', bins: [{ count: 1 }] });
  expect(others).toEqual([]);
});

test('origins sum to all kernels', async () => {
  const session = await sessionOf(rows);
  const { kernels_total } = (await analyzeTrace(session)).data;
  const origins = await readKernelOrigins(await traceScope(await session.connect(), session.manifest));
  expect(origins.reduce((sum, { total_ns }) => sum + total_ns, 0)).toBe(kernels_total.total_ns);
  expect(origins.map(({ phase, kernel: name, operator }) => [phase, name, operator])).toEqual([
    ['decode', 'a', null],
    ['outside', 'b', null],
  ]);
});
