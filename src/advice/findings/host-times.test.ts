import { afterAll, expect, test } from 'vitest';
import { stageFacts } from './stage-facts.js';
import { closeAll, contextOf, type Part, stepRows } from './test-steps.js';

afterAll(closeAll);

test('the host time of a step excludes its waits; without a clean execution its own time is not known', async () => {
  // 20 kernels of 50 µs, launched in their order, then the host waits for 300 µs.
  const parts: Part[] = [
    ...Array.from({ length: 20 }, (_, i): Part => ({
      kernel: 50,
      more: { api_dur_ns: 5_000, correlation: i + 1 },
    })),
    { call: 'cudaStreamSynchronize', from: 700, takes: 300 },
  ];
  const [decode] = await stageFacts(await contextOf(stepRows('decode', 8, () => parts)));
  expect(decode!.captured_host_ms).toBeCloseTo(0.7, 6);
  expect(decode!.own_host_ms).toBeNull();
});
