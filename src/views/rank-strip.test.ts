import { expect, test } from 'vitest';
import type { HeatChart } from './chart.js';
import { rankStrip } from './rank-strip.js';

/** 512 ranks; rank 300 takes 12.5 ms instead of 10 in the second of three steps, and the last rank has no third step. */
const ranks = Array.from({ length: 512 }, (_, rank) => ({
  rank,
  ms: [10, rank === 300 ? 12.5 : 10, rank === 511 ? null : 10],
}));
const steps = [
  { first: 1, last: 2 },
  { first: 3, last: 4 },
  { first: 5, last: 5 },
];

test('the slow one of 512 ranks is dark in its step and first in the table', () => {
  const block = rankStrip({ steps, ranks });
  if (block.type !== 'chart' || block.behind.type !== 'table') throw new Error('no chart with a table');
  const { x, y, cells, slim } = block.chart as HeatChart;
  expect([slim, x.values, y.values[0], y.values.length]).toEqual([true, ['1-2', '3-4', '5'], '511', 512]);
  // A quarter above the median is half of the scale.
  expect(cells.filter(({ shade }) => shade !== 0).map(({ shade, notes }) => [shade, notes[0]])).toEqual([
    [0.5, 'rank 300, step 3-4'],
    [null, 'rank 511, step 5'],
  ]);
  expect(cells.find(({ shade }) => shade === 0.5)).toMatchObject({ x: 1, y: 511 - 300 });
  expect(block.behind.rows).toHaveLength(512);
  expect(block.behind.rows[0]!.cells).toEqual([
    { count: 300 },
    { n: (10 + 12.5 + 10) / 3, unit: 'ms' },
    { n: 0.25, unit: 'ratio', signed: true },
    '3-4',
    '1 of 3',
  ]);
});
