import { expect, test } from 'vitest';
import { kernel, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

/** A prefill, and two decode steps that begin `pause` µs after it. */
const shownUs = async (pause: number): Promise<number> => {
  const decode = 100 + pause;
  const session = await sessionOf({
    stages: [
      stage(1, 'prefill', 0, 100),
      stage(2, 'decode', decode, decode + 10, { step_index: 0 }),
      stage(3, 'decode', decode + 10, decode + 20, { step_index: 1 }),
    ],
    kernels: [kernel(1, 20, 40), kernel(2, decode + 1, 5), kernel(3, decode + 11, 5)],
  });
  return (await analyzeTrace(session)).data.timeline!.dur_ns / us;
};

test('shows a prefill with the decode steps after it, but not after a pause of half a second', async () => {
  expect(await shownUs(30)).toBe(150);
  expect(await shownUs(600_000)).toBe(100);
});
