import { expect, test } from 'vitest';
import { kernel, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

/** Requests of a prefill and `decodes` steps, 10 µs longer with each token, times what the run does to a step. */
async function driftOf(requests: number, decodes: number, factor: (at: number) => number) {
  const stages = [];
  const kernels = [];
  let now = 0;
  let id = 1;
  for (let iteration = 0; iteration < requests; iteration++) {
    for (let step = 0; step < decodes; step++) {
      const at = (iteration * decodes + step) / (requests * decodes - 1);
      const wall = Math.round((100 + 10 * step) * factor(at));
      stages.push(stage(id, 'decode', now, now + wall, { iteration, step_index: step }));
      kernels.push(kernel(id, now + 1, 20));
      now += wall;
      id++;
    }
    now += 50;
  }
  const { data } = await analyzeTrace(await sessionOf({ stages, kernels }));
  return data.drift!.find(({ kind }) => kind === 'decode')!;
}

test('a step 20 % slower at the end: 18 % of the median step, within the interval', async () => {
  const found = await driftOf(20, 8, (at) => 1 + 0.2 * at);
  expect(found).toMatchObject({ steps: 160, alike: 'place' });
  // 0.2 over the median factor of 1.1.
  expect(found.change.value).toBeCloseTo(0.2 / 1.1, 1);
  const [low, high] = 'ci95' in found.change ? found.change.ci95! : [0, 0];
  expect([low > 0.15, high < 0.22]).toEqual([true, true]);
  expect(found.parts[0]!.relative!).toBeLessThan(0.95);
  expect(found.parts.at(-1)!.relative!).toBeGreaterThan(1.05);
  expect(found.parts.reduce((sum, { steps }) => sum + steps, 0)).toBe(160);
});

test('a cache that grows with every token of a request, or a few disturbed steps, are not drift', async () => {
  const found = await driftOf(20, 8, (at) => (at > 0.4 && at < 0.5 ? 3 : 1));
  expect(Math.abs(found.change.value!)).toBeLessThan(0.005);
});

test('the steps of one request each do different work: no trend is reported', async () => {
  const found = await driftOf(1, 30, () => 1);
  expect(found).toMatchObject({
    steps: 0,
    change: { value: null, reason: { code: 'too_few_steps' } },
    parts: [],
  });
  expect(found.span_ns / us).toBe(0);
});
