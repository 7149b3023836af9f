import { expect, test } from 'vitest';
import { benchPoint } from '../../model/bench.js';
import { leftWords, startCountEta, startEta } from './eta.js';

const points = [benchPoint(['latency'], 1, 8, 10), benchPoint(['latency'], 1, 8, 20)];
const [first, second] = points.map(({ point }) => point) as [string, string];

test('the remaining time follows from the measured points', () => {
  let nowMs = 0;
  const eta = startEta([{ execution_id: 'v', points }], { launches: 2, repeats: 5 }, () => nowMs);
  expect(eta.secondsLeft()).toBeNull();
  eta.startLaunch('v', 0);
  // One second of startup, then 2 s.
  nowMs = 3000;
  eta.addIteration('v', 0, first, 2000);
  nowMs = 7000;
  eta.addIteration('v', 0, second, 4000);
  // Repeats with the usual 2.5 warm-ups: 6.5 are left of each, then a startup and 7.5 of each.
  expect(eta.secondsLeft()).toBeCloseTo(6.5 * 6 + 1 + 7.5 * 6, 6);
  eta.closePoint('v', 0, first);
  expect(eta.secondsLeft()).toBeCloseTo(6.5 * 4 + 1 + 7.5 * 6, 6);
  eta.endLaunch('v', 0);
  expect(eta.secondsLeft()).toBeCloseTo(1 + 7.5 * 6, 6);
});

test('estimates a new point by its size', () => {
  const eta = startEta([{ execution_id: 'v', points }], { launches: 1, repeats: 1 }, () => 0);
  eta.startLaunch('v', 0);
  eta.addIteration('v', 0, first, 1008);
  // 10 tokens and 8 of the prompt took 1008 ms: 100 ms per token, so 20 tokens take 2008.
  expect(eta.secondsLeft()).toBeCloseTo(2.5 * 1.008 + 3.5 * 2.008, 6);
});

test('estimates equal parts by the time since the first one started', () => {
  let nowMs = 90_000;
  const secondsLeft = startCountEta(() => nowMs);
  expect(secondsLeft(0, 10)).toBeNull();
  nowMs += 6_000;
  expect(secondsLeft(2, 10)).toBe(24);
  nowMs += 9_000;
  // 15 s for 5 parts.
  expect(secondsLeft(5, 10)).toBe(15);
  expect(secondsLeft(0, 4)).toBeNull();
  nowMs += 1_000;
  expect(secondsLeft(1, 4)).toBe(3);
  expect([null, 24].map(leftWords)).toEqual(['', 'about 24 s left · ']);
});
