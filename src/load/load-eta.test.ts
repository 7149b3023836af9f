import { expect, test } from 'vitest';
import { startLoadEta } from './load-eta.js';

const unbounded = Number.POSITIVE_INFINITY;
const oneUser = { requests: 33, seconds: unbounded, users: 1 };
const two = { requests: 34, seconds: unbounded, users: 2 };

test('computes the remaining time of this load and the next from answered requests', () => {
  let nowMs = 0;
  const eta = startLoadEta(() => nowMs);
  eta.startLoad(oneUser);
  expect(eta.remainingS([two])).toBeNull();
  nowMs = 6000;
  eta.setAnswered(3);
  // 2 s per request: 30 remain for one user, then 17 for each of two.
  expect(eta.remainingS([two])).toBeCloseTo(30 * 2 + 17 * 2, 9);
  nowMs = 66_000;
  eta.setAnswered(33);
  expect(eta.remainingS([two])).toBeCloseTo(34, 9);
  eta.startLoad(two);
  expect(eta.remainingS([])).toBeCloseTo(34, 9);
  nowMs = 72_000;
  // Two users took 3 s each for the first two pairs.
  eta.setAnswered(4);
  expect(eta.remainingS([])).toBeCloseTo(15 * 3, 9);
});

test('a load limited by time ends with that time, for any number of answers', () => {
  let nowMs = 0;
  const eta = startLoadEta(() => nowMs);
  const open = { requests: unbounded, seconds: 30, users: null };
  eta.startLoad(open);
  nowMs = 10_000;
  expect(eta.remainingS([open])).toBe(50);
  nowMs = 35_000;
  expect(eta.remainingS([])).toBe(0);
  eta.startLoad({ requests: 500, seconds: 20, users: 1 });
  expect(eta.remainingS([])).toBe(20);
});
