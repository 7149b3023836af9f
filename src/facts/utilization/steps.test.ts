import { expect, test } from 'vitest';
import { testHome } from '../../session/test-folder.js';
import { readRecordedSteps } from './steps.js';
import { ms, sessionsIn, step } from './test-hand.js';

const session = sessionsIn(testHome());
const iterations = [0, 1].map((iteration) => ({
  execution_id: 'clean',
  iteration,
  launch: 0,
  point: null,
  start_ns: iteration * 100 * ms,
  end_ns: (iteration * 100 + 90) * ms,
}));

test('only the last step of an iteration runs to its end', async () => {
  const stages = [
    step('clean', 'prefill', 0, 10),
    step('clean', 'decode', 10, 12, { batch_size: 2 }),
    step('clean', 'decode', 20, 23),
    // Another prompt in the same iteration: the step before it is not the last one.
    step('clean', 'prefill', 40, 50),
    step('clean', 'decode', 50, 52),
    step('clean', 'prefill', 100, 110, { iteration: 1 }),
    step('clean', 'mixed', 110, 115, { iteration: 1 }),
  ];
  const opened = await session({ stages, iterations }, { clean: 'clean' });
  const database = await opened.connect();
  const timesOf = async (toIterationEnd: boolean) =>
    (await readRecordedSteps(database, 'clean', { rank: 0, toIterationEnd })).map(
      ({ wall_ns }) => wall_ns / ms,
    );
  expect(await timesOf(true)).toEqual([10, 10, 3, 10, 40, 10, 5]);
  expect(await timesOf(false)).toEqual([10, 10, 3, 10, 2, 10, 5]);
  const sources = (await readRecordedSteps(database, 'clean', { rank: 0 })).map(
    ({ sizes_from }) => sizes_from,
  );
  expect(sources.slice(0, 2)).toEqual([null, 'the stages']);
  await database.close();
});
