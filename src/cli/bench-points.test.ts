import { expect, test } from 'vitest';
import { pointsOf } from './bench-points.js';

const names = (...args: Parameters<typeof pointsOf>) => pointsOf(...args).map(({ point }) => point);

test('each command has default shapes', () => {
  expect(names('latency', {})).toEqual(['b1-p128-o64']);
  expect(names('throughput', {})).toEqual([1, 4, 8, 16, 32].map((batch) => `b${batch}-p128-o64`));
  // Both axes contain 200 → 50, which is measured once.
  expect(names('sequence', {})).toEqual([
    'b1-p10-o50',
    'b1-p50-o50',
    'b1-p200-o50',
    'b1-p1000-o50',
    'b1-p200-o100',
    'b1-p200-o200',
  ]);
});

test('a suite is the union, each shape once with the benchmarks that use it', () => {
  const suite = pointsOf('suite', {});
  expect(suite).toHaveLength(11);
  expect(new Set(suite.map(({ point }) => point)).size).toBe(11);
  const shared = suite.find(({ point }) => point === 'b1-p128-o64');
  expect(shared?.parts).toEqual(['latency', 'throughput']);
  const all = pointsOf('suite', { batchSize: [1, 2], inputLen: [8], outputLen: [4] });
  expect(all.map(({ point, parts }) => [point, parts.join(' ')])).toEqual([
    ['b1-p8-o4', 'latency throughput sequence'],
    ['b2-p8-o4', 'throughput'],
  ]);
});

test('lists from options replace the defaults; the length that does not vary is the default, or the first one given', () => {
  expect(names('throughput', { batchSize: [2, 3], inputLen: [16], outputLen: [8] })).toEqual([
    'b2-p16-o8',
    'b3-p16-o8',
  ]);
  expect(names('sequence', { inputLen: [64, 256], outputLen: [32, 128] })).toEqual([
    'b1-p64-o32',
    'b1-p256-o32',
    'b1-p64-o128',
  ]);
  expect(names('sequence', { inputLen: [64, 200] })).toEqual([
    'b1-p64-o50',
    'b1-p200-o50',
    'b1-p200-o100',
    'b1-p200-o200',
  ]);
});

test('--grid measures all pairs', () => {
  expect(names('sequence', { inputLen: [8, 16], outputLen: [4, 6], batchSize: [2], grid: true })).toEqual([
    'b2-p8-o4',
    'b2-p8-o6',
    'b2-p16-o4',
    'b2-p16-o6',
  ]);
});
