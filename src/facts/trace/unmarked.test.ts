import { expect, test } from 'vitest';
import { traceScope } from '../derived/scope.js';
import { kernel, type Rows, sessionOf, stage } from './test-hand.js';
import { windowClocks } from './windows.js';

async function clocksOf(rows: Rows) {
  const session = await sessionOf(rows);
  const database = await session.connect();
  try {
    return await windowClocks((await traceScope(database, session.manifest))!);
  } finally {
    await database.close();
  }
}

const work = Array.from({ length: 20 }, (_, i) => kernel(null, 2000 + 100 * i, 80));

test('ignores a warm-up without work: the whole capture is one stage', async () => {
  const clocks = await clocksOf({ stages: [stage(0, 'warmup', 0, 1000)], kernels: work });
  expect(clocks).toMatchObject([
    { kind: 'outside', clockWhy: expect.stringContaining('less than a tenth of the kernel time') },
  ]);
});

test('marked steps that contain the work are the stages, however short they are', async () => {
  const step = stage(0, 'decode', 1990, 2010, { device_start_ns: 2_000_000, device_end_ns: 2_080_000 });
  const clocks = await clocksOf({ stages: [step], kernels: [kernel(0, 2000, 80), ...work.slice(-2)] });
  expect(clocks.map(({ kind }) => kind)).toEqual(['decode']);
});
