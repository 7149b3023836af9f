import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { inLanes } from './lanes.js';

test('runs at most as many items at a time as there are lanes, and every item once', async () => {
  let running = 0;
  let maxRunning = 0;
  const done: number[] = [];
  await inLanes([5, 6, 7, 8, 9], 2, async (item, index) => {
    maxRunning = Math.max(maxRunning, ++running);
    await sleep(1);
    running--;
    done[index] = item;
  });
  expect([maxRunning, done]).toEqual([2, [5, 6, 7, 8, 9]]);
});

test('after a failure starts no item and waits for running ones', async () => {
  const started: number[] = [];
  let ended = false;
  const failing = inLanes([0, 1, 2, 3], 2, async (item) => {
    started.push(item);
    if (item === 0) throw new Error('full');
    await sleep(5);
    ended = true;
  });
  await expect(failing).rejects.toThrow('full');
  expect([started, ended]).toEqual([[0, 1], true]);
});
