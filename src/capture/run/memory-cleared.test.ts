import { expect, test } from 'vitest';
import type { Gpus } from '../telemetry-gpus.js';
import { waitForFreedMemory } from './memory-cleared.js';

const gib = 2 ** 30;

/** GPUs with used memory from these lists; the last value repeats. */
function gpusThatHold(...readings: (number | null)[][]): Pick<Gpus, 'devices'> {
  return {
    devices: readings.map((reading) => {
      let readingIndex = 0;
      const sample = () => ({ memoryUsedBytes: reading[Math.min(readingIndex++, reading.length - 1)]! });
      return { sample } as unknown as Gpus['devices'][number];
    }),
  };
}
const waitForGpus = (gpus: Pick<Gpus, 'devices'>, before: (number | null)[], limitMs = 0) =>
  waitForFreedMemory(gpus, before, new AbortController().signal, limitMs);

test('reports memory that stays, with device and amount, but not memory that is freed in time', async () => {
  const issue = await waitForGpus(gpusThatHold([gib], [5.5 * gib]), [gib, gib]);
  expect(issue).toMatchObject({ code: 'gpu_memory_not_cleared', severity: 'warning' });
  expect(issue!.text).toContain('GPU 1 uses 4.50 GiB more than before the first execution');
  expect(await waitForGpus(gpusThatHold([4 * gib, gib]), [gib], 2000)).toBeNull();
});

test('ignores a small increase, a decrease, and a device without a value', async () => {
  expect(await waitForGpus(gpusThatHold([1.2 * gib]), [gib])).toBeNull();
  expect(await waitForGpus(gpusThatHold([0]), [gib])).toBeNull();
  expect(await waitForGpus(gpusThatHold([null]), [gib])).toBeNull();
  expect(await waitForGpus(gpusThatHold([9 * gib]), [null])).toBeNull();
  expect(await waitForFreedMemory(null, null, new AbortController().signal)).toBeNull();
});
