import { expect, test } from 'vitest';
import { sortedPoints } from './bench.js';

test('points are sorted by their numbers; other differences keep their order', () => {
  const users = ['8 users', '1 user', '2 users'];
  expect(sortedPoints([...users, '10 req/s (Poisson)', '2.5 req/s (Poisson)', null, '2 users'])).toEqual([
    null,
    '1 user',
    '2 users',
    '8 users',
    '2.5 req/s (Poisson)',
    '10 req/s (Poisson)',
  ]);
  expect(
    sortedPoints(['mode=eager · b4-p128-o64', 'mode=cudagraph · b1-p8-o1', 'mode=eager · b1-p128-o64']),
  ).toEqual(['mode=eager · b1-p128-o64', 'mode=eager · b4-p128-o64', 'mode=cudagraph · b1-p8-o1']);
});
