import { expect, test } from 'vitest';
import { traceScope } from '../derived/scope.js';
import { kernel, type Rows, sessionOf, stage, us } from './test-hand.js';

/** The windows of the steps, µs. */
async function windowsOf(rows: Rows) {
  const session = await sessionOf(rows);
  const database = await session.connect();
  try {
    const scope = (await traceScope(database, session.manifest))!;
    await scope.need('windows');
    return await database.query<{ from: number; until: number }>(
      `SELECT start_ns / ${us} AS "from", end_ns / ${us} AS until FROM windows ORDER BY start_ns`,
    );
  } finally {
    await database.close();
  }
}

const device = (from: number, until: number) => ({ device_start_ns: from * us, device_end_ns: until * us });
const side = { stream: 2 };
const main = { stream: 3 };

test('the first step starts on its main stream: the device may still do work from before the capture', async () => {
  const stages = [stage(0, 'prefill', 0, 400, device(1, 480))];
  // A copy on a side stream runs at once; the kernels wait for work that the capture does not contain.
  const kernels = [kernel(0, 1, 2, side), kernel(0, 460, 10, main), kernel(0, 470, 10, main)];
  expect(await windowsOf({ stages, kernels })).toEqual([{ from: 460, until: 480 }]);
  // Earlier work of that stream is in the capture, so the wait is the step's.
  const earlier = [kernel(null, 0, 1, main), ...kernels];
  expect(await windowsOf({ stages, kernels: earlier })).toEqual([{ from: 1, until: 480 }]);
});

test('later steps start with their first kernel of any stream', async () => {
  const stages = [
    stage(0, 'prefill', 0, 20, device(5, 30)),
    stage(1, 'prefill', 25, 50, { iteration: 1, ...device(30, 90) }),
  ];
  const kernels = [kernel(0, 5, 25, main), kernel(1, 30, 2, side), kernel(1, 70, 20, main)];
  expect(await windowsOf({ stages, kernels })).toEqual([
    { from: 5, until: 30 },
    { from: 30, until: 90 },
  ]);
});
