import { expect, test } from 'vitest';
import { kernel, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

/**
 * Requests of `decodes` steps, with a pause after each. Each step of a request is 10 µs longer than the previous one, times
 * a factor by its place in the run.
 */
async function driftOf(requests: number, decodes: number, factor: (progress: number) => number) {
  const stages = [];
  const kernels = [];
  let now = 0;
  let id = 1;
  for (let iteration = 0; iteration < requests; iteration++) {
    for (let step = 0; step < decodes; step++) {
      const progress = (iteration * decodes + step) / (requests * decodes - 1);
      const wall = Math.round((100 + 10 * step) * factor(progress));
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

test('a run that ends 20 % slower drifts by 20 %, within the interval', async () => {
  const drift = await driftOf(20, 8, (progress) => 1 + 0.2 * progress);
  expect(drift).toMatchObject({ steps: 160, matched_by: 'position' });
  expect(drift.change.value).toBeCloseTo(0.2, 2);
  const [low, high] = 'ci95' in drift.change ? drift.change.ci95! : [0, 0];
  expect([low > 0.18, high < 0.22]).toEqual([true, true]);
  expect(drift.parts[0]!.relative!).toBeLessThan(0.95);
  expect(drift.parts.at(-1)!.relative!).toBeGreaterThan(1.05);
  expect(drift.parts.reduce((sum, { steps }) => sum + steps, 0)).toBe(160);
});

test('a run that ends in a tenth of its first time is 90 % faster, not more than 100 %', async () => {
  const drift = await driftOf(20, 8, (progress) => 0.1 ** progress);
  const [low, high] = 'ci95' in drift.change ? drift.change.ci95! : [0, 0];
  // Steps become shorter, so the run's middle in steps is after its middle in time.
  expect([low > -1, drift.change.value! < -0.85, high < -0.8]).toEqual([true, true, true]);
});

test('a KV cache that grows within a request, or a few slow steps, is not drift', async () => {
  const drift = await driftOf(20, 8, (progress) => (progress > 0.4 && progress < 0.5 ? 3 : 1));
  expect(Math.abs(drift.change.value!)).toBeLessThan(0.005);
});

test('steps of a single request do different work, so no trend is reported', async () => {
  const drift = await driftOf(1, 30, () => 1);
  expect(drift).toMatchObject({
    steps: 0,
    change: { value: null, reason: { code: 'too_few_steps' } },
    parts: [],
  });
  expect(drift.span_ns / us).toBe(0);
});
