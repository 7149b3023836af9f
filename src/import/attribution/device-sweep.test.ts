import { expect, test } from 'vitest';
import { deviceSweep } from './device-sweep.js';

type Activity = [startNs: number, endNs: number, priority: number, stream: number];

function runSweep(activities: Activity[]) {
  const exclusive: number[] = [];
  const idle: [number, number, number][] = [];
  const sweep = deviceSweep({
    ended: (activity, _durNs, exclusiveNs) => (exclusive[activity] = exclusiveNs),
    idle: (activity, fromNs, toNs) => idle.push([activity, fromNs, toNs]),
  });
  activities.forEach(([start, end, priority, stream], i) => sweep.add(i, start, end, priority, stream));
  sweep.finish();
  return { exclusive, idle };
}

test('sequential activities have their duration, with idle time between', () => {
  expect(
    runSweep([
      [10, 20, 0, 1],
      [20, 25, 0, 1],
      [40, 45, 0, 1],
    ]),
  ).toEqual({ exclusive: [10, 5, 5], idle: [[2, 25, 40]] });
});

test('overlap on one stream belongs to the activity that started first', () => {
  // 0-10 first; 10-15 the remainder of the second.
  expect(
    runSweep([
      [0, 10, 0, 1],
      [6, 15, 0, 1],
    ]).exclusive,
  ).toEqual([10, 5]);
});

test('overlap across streams is shared equally, to the nanosecond', () => {
  // 0-3 first alone; 3-10 shared by two: 7 = 4 + 3; 10-12 second alone.
  expect(
    runSweep([
      [0, 10, 0, 1],
      [3, 12, 0, 2],
    ]).exclusive,
  ).toEqual([7, 5]);
  // Three streams for 10 ns: 4 + 3 + 3.
  expect(
    runSweep([
      [0, 10, 0, 1],
      [0, 10, 0, 2],
      [0, 10, 0, 3],
    ]).exclusive,
  ).toEqual([4, 3, 3]);
});

test('compute comes before communication, communication before copies', () => {
  // The copy 0-30 counts at 0-5 and 25-30; communication 5-25 at 5-10 and 20-25; compute at 10-20.
  expect(
    runSweep([
      [0, 30, 2, 3],
      [5, 25, 1, 2],
      [10, 20, 0, 1],
    ]),
  ).toEqual({ exclusive: [10, 10, 10], idle: [] });
});

test('an activity inside another one on a third stream, and one without duration', () => {
  expect(
    runSweep([
      [0, 100, 0, 1],
      [50, 50, 0, 2],
      [60, 80, 0, 2],
      [150, 150, 0, 1],
      [150, 160, 0, 1],
    ]),
  ).toEqual({ exclusive: [90, 0, 10, 0, 10], idle: [[3, 100, 150]] });
});

test('for any overlap, exclusive time and idle time sum to the span', () => {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  for (let round = 0; round < 50; round++) {
    const activities = Array.from({ length: 200 }, (): Activity => {
      const start = random(5000);
      return [start, start + random(60), random(3), random(4)];
    }).sort(([a], [b]) => a - b);
    const { exclusive, idle } = runSweep(activities);
    const sum = exclusive.reduce((a, b) => a + b, 0) + idle.reduce((a, [, from, to]) => a + to - from, 0);
    expect(sum).toBe(Math.max(...activities.map(([, end]) => end)) - activities[0]![0]);
    activities.forEach(([start, end], i) => {
      expect(exclusive[i]).toBeGreaterThanOrEqual(0);
      expect(exclusive[i]).toBeLessThanOrEqual(end - start);
    });
  }
});
