import { expect, test } from 'vitest';
import { kernel, sessionOf, stage } from '../trace/test-hand.js';
import { traceScope } from '../derived/scope.js';
import { timelineWaterfalls } from './waterfall.js';

test('names kernels without a class from 2 % of a stage on', async () => {
  const session = await sessionOf({
    stages: [stage(1, 'decode', 0, 100), stage(2, 'decode', 100, 200)],
    kernels: [0, 100].flatMap((start, index) => [
      kernel(index + 1, start + 10, 60),
      kernel(index + 1, start + 70, 4, { class: 'other', short_name: 'mystery_a' }),
      kernel(index + 1, start + 74, 6, { class: 'other', short_name: 'mystery_b' }),
      kernel(index + 1, start + 80, 1, { class: 'other', short_name: 'small' }),
    ]),
  });
  const database = await session.connect();
  try {
    const { stages } = await timelineWaterfalls(
      session,
      database,
      await traceScope(database, session.manifest),
    );
    const other = stages[0]!.bars.find(({ id }) => id === 'kernels.other')!;
    expect([other.ms, other.count]).toEqual([0.011, 3]);
    expect(other.parts).toEqual([
      { label: 'unknown: mystery_b', ms: 0.006, count: 1 },
      { label: 'unknown: mystery_a', ms: 0.004, count: 1 },
    ]);
    expect(stages[0]!.bars.find(({ id }) => id === 'kernels.gemm')!.parts).toEqual([]);
  } finally {
    await database.close();
  }
});
