import { expect, test } from 'vitest';
import { kernel, sessionOf, stage, us } from './test-hand.js';
import { analyzeTrace } from './trace.js';

/** A kernel launched `before` µs before its start, by a call of 5 µs. */
const early = (stageId: number, from: number, durationUs: number, before: number, name: string) =>
  kernel(stageId, from, durationUs, { name, short_name: name, api_start_ns: (from - before) * us });

test('times of launched kernels equal the hand calculation, also on a separate connection', async () => {
  const session = await sessionOf({
    stages: [stage(1, 'decode', 0, 1000)],
    kernels: [
      early(1, 100, 10, 15, 'a'),
      early(1, 200, 20, 25, 'a'),
      early(1, 300, 60, 5, 'a'),
      early(1, 400, 30, 8, 'b'),
      early(1, 500, 50, 6, 'b'),
    ],
    api_calls: [{ name: 'cudaLaunchKernel', api: 'runtime', start_ns: 0, dur_ns: 5000 }],
  });
  const { data } = await analyzeTrace(session);
  const [a, b] = data.launches.kernels;
  expect([a?.kernel, a?.count, b?.kernel, b?.count]).toEqual(['a', 3, 'b', 2]);
  // 25, 45 and 65 µs from the call's start to the kernel's end. A call that returned when its kernel started has no
  // queue time.
  expect(a).toMatchObject({
    total: { median_ns: 45 * us, min_ns: 25 * us, max_ns: 65 * us },
    queue: { count: 2, median_ns: 15 * us, total_ns: 30 * us },
    kernel_spread: { median_ns: 20 * us, total_ns: 90 * us },
  });
  expect(b).toMatchObject({ queue: { median_ns: 2 * us }, kernel_spread: { median_ns: 40 * us } });
  expect(data.kernels[0]).toMatchObject({ name: 'a', median_ns: 20 * us, mean_ns: 30 * us });
  const [decode] = data.launches.phases;
  // Queue times of 10, 20, 3 and 1 µs.
  expect(decode).toMatchObject({ queue: { count: 4, median_ns: 6.5 * us }, api: { count: 5 } });

  // A session with a manifest that lists a million kernels.
  const { manifest } = session;
  const kernels = manifest.tables['kernels']!.map((file) => ({ ...file, rows: 1e6 }));
  const large = { ...session, manifest: { ...manifest, tables: { ...manifest.tables, kernels } } };
  expect((await analyzeTrace(large)).data).toEqual(data);
});
