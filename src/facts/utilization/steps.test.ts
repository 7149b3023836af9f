import { expect, test } from 'vitest';
import { testHome } from '../../session/test-folder.js';
import { interruptedStepIssues, readRecordedSteps } from './steps.js';
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

test('a rare decode step of ten medians is in no mean, and is named', async () => {
  const steps = (longMs: number, count = 60) =>
    Array.from({ length: count }, (_, index) => {
      const start = index * 1000;
      return step('clean', 'decode', start, start + (index === 30 ? longMs : 4), {
        step_index: null,
        iteration: index,
      });
    });
  const read = async (stages: ReturnType<typeof steps>) => {
    const opened = await session({ stages, iterations: [] }, { clean: 'clean' });
    const database = await opened.connect();
    const { length } = await readRecordedSteps(database, 'clean', { rank: 0 });
    const texts = (await interruptedStepIssues(opened, database)).map(({ text }) => text);
    await database.close();
    return { length, texts };
  };
  expect(await read(steps(352))).toEqual({
    length: 59,
    texts: [
      'Without a profiler 1 of 60 decode steps took 352 ms, the median is 4.00 ms: means leave out steps of ten medians and more.',
    ],
  });
  // 39 ms may be a step of the program; one of 40 steps is not rare; prefills differ in length.
  expect(await read(steps(39))).toEqual({ length: 60, texts: [] });
  expect(await read(steps(352, 40))).toEqual({ length: 40, texts: [] });
  expect(await read(steps(352).map((one) => ({ ...one, kind: 'prefill' })))).toEqual({
    length: 60,
    texts: [],
  });
});
