import { expect, test } from 'vitest';
import { bySize, interleaved } from './point-order.js';

const point = (name: string, repeats: number) => ({ name, repeats });
const names = (points: Iterable<{ name: string }>) => [...points].map(({ name }) => name).join(' ');

test('every round starts one point later, and every launch with another point', () => {
  const points = [point('a', 3), point('b', 3), point('c', 3)];
  expect(names(interleaved(points, 0))).toBe('a b c b c a c a b');
  expect(names(interleaved(points, 1))).toBe('b c a c a b a b c');
});

test('every point takes every position equally often if the number of rounds is a multiple of the points', () => {
  const points = ['a', 'b', 'c', 'd'].map((name) => point(name, 8));
  const order = [...interleaved(points, 2)].map(({ name }) => name);
  for (const name of 'abcd')
    for (let place = 0; place < 4; place++)
      expect(order.filter((one, i) => one === name && i % 4 === place)).toHaveLength(2);
});

test('points with fewer repeats drop out; none is left out', () => {
  expect(names(interleaved([point('a', 1), point('b', 3)], 0))).toBe('a b b b');
  expect(names(interleaved([], 0))).toBe('');
});

test('warm-up order is from small to large: by cache, then by prompt', () => {
  const shape = (batchSize: number, inputLen: number, outputLen: number) => ({
    name: `${batchSize}-${inputLen}-${outputLen}`,
    batchSize,
    inputLen,
    outputLen,
  });
  const points = [shape(4, 100, 50), shape(1, 50, 100), shape(1, 100, 50), shape(2, 10, 10)];
  expect(names(bySize(points))).toBe('2-10-10 1-50-100 1-100-50 4-100-50');
});
