import { expect, test } from 'vitest';
import { giveContext } from '../../session/edit.js';
import { openFolder } from '../../session/open.js';
import { kernel, sessionOf, stage } from '../trace/test-hand.js';
import { traceScope } from '../derived/scope.js';
import { timelineWaterfalls } from './waterfall.js';

const twoUnknown = () =>
  sessionOf({
    stages: [stage(1, 'decode', 0, 100), stage(2, 'decode', 100, 200)],
    kernels: [0, 100].flatMap((start, index) => [
      kernel(index + 1, start + 10, 60),
      kernel(index + 1, start + 70, 4, { class: 'other', short_name: 'mystery_a' }),
      kernel(index + 1, start + 74, 6, { class: 'other', short_name: 'mystery_b' }),
      kernel(index + 1, start + 80, 1, { class: 'other', short_name: 'small' }),
    ]),
  });

test('names kernels without a class from 2 % of a stage on', async () => {
  const session = await twoUnknown();
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
      { label: 'unknown: mystery_b', kernel: 'mystery_b', ms: 0.006, count: 1 },
      { label: 'unknown: mystery_a', kernel: 'mystery_a', ms: 0.004, count: 1 },
    ]);
    expect(stages[0]!.bars.find(({ id }) => id === 'kernels.gemm')!.parts).toEqual([]);
  } finally {
    await database.close();
  }
});

test('counts kernels in the classes that the user gave, in every analysis', async () => {
  const recorded = await twoUnknown();
  await giveContext(recorded, { kernel_classes: { mystery_a: 'attention' } });
  await giveContext(recorded, { kernel_classes: { mystery_b: 'norm' } });
  const session = await openFolder(recorded);
  expect(session.user.context).toEqual({ kernel_classes: { mystery_a: 'attention', mystery_b: 'norm' } });
  const database = await session.connect();
  try {
    const { stages } = await timelineWaterfalls(
      session,
      database,
      await traceScope(database, session.manifest),
    );
    const msOf = (id: string) => stages[0]!.bars.find((bar) => bar.id === id)?.ms;
    expect(msOf('kernels.attention')).toBe(0.004);
    expect(msOf('kernels.norm')).toBe(0.006);
    expect(msOf('kernels.other')).toBe(0.001);
  } finally {
    await database.close();
  }
});
