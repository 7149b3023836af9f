import { expect, test } from 'vitest';
import type { MemoryOverTime } from '../facts/memory-profile/over-time.js';
import { memorySections } from './memory-page.js';

const line = (kind: string): MemoryOverTime => ({
  execution: 'nsys',
  place: 'GPU 0',
  kind,
  rank: null,
  points: [
    [0, 1],
    [1, 2],
  ],
});
const titlesOf = (lines: MemoryOverTime[]) =>
  memorySections(lines, { subjects: ['telemetry'] } as never, new Map()).flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.type === 'chart' ? [block.title] : [])),
  );

test('the title of a chart names its only line, which has no legend', () => {
  expect(titlesOf([line('used')])).toEqual(['GPU 0: used on the GPU, by all processes']);
  expect(titlesOf([line('used'), line('allocated')])).toEqual(['GPU 0']);
});
