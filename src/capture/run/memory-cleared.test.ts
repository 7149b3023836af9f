import { expect, test } from 'vitest';
import type { Gpus } from '../telemetry-gpus.js';
import { deviceMemoryCleared } from './memory-cleared.js';

const gib = 2 ** 30;

/** GPUs with used memory from these lists; the last value repeats. */
function gpusThatHold(...readings: (number | null)[][]): Pick<Gpus, 'devices'> {
  return {
    devices: readings.map((reading) => {
      let nowMs = 0;
      const sample = () => ({ memoryUsedBytes: reading[Math.min(nowMs++, reading.length - 1)]! });
      return { sample } as unknown as Gpus['devices'][number];
    }),
  };
}
const cleared = (gpus: Pick<Gpus, 'devices'>, before: (number | null)[], limitMs = 0) =>
  deviceMemoryCleared(gpus, before, new AbortController().signal, limitMs);

test('reports memory that stays, with device and amount, but not memory that is freed in time', async () => {
  const issue = await cleared(gpusThatHold([gib], [5.5 * gib]), [gib, gib]);
  expect(issue).toMatchObject({ code: 'gpu_memory_not_cleared', severity: 'warning' });
  expect(issue!.text).toContain('GPU 1 uses 4.50 GiB more than before the first execution');
  expect(await cleared(gpusThatHold([4 * gib, gib]), [gib], 2000)).toBeNull();
});

test('ignores a small increase, a decrease, and a device without a value', async () => {
  expect(await cleared(gpusThatHold([1.2 * gib]), [gib])).toBeNull();
  expect(await cleared(gpusThatHold([0]), [gib])).toBeNull();
  expect(await cleared(gpusThatHold([null]), [gib])).toBeNull();
  expect(await cleared(gpusThatHold([9 * gib]), [null])).toBeNull();
  expect(await deviceMemoryCleared(null, null, new AbortController().signal)).toBeNull();
});
