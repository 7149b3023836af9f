import { expect, test } from 'vitest';
import { arrivalQueue } from './arrival-queue.js';

test('delivers bytes in order and unchanged for any backlog, then calls the end', async () => {
  const queue = arrivalQueue();
  const shared = Buffer.alloc(4000);
  let [sent, received] = ['', ''];
  const stamps: number[] = [];
  // 3 MB: more than one slab, and many slices.
  for (let round = 0; round < 3; round++) {
    for (let index = 0; index < 1000; index++) {
      const length = 1 + ((index * 37) % 2000);
      shared.fill(97 + (index % 26), 10, 10 + length);
      sent += shared.toString('latin1', 10, 10 + length);
      queue.put(
        (bytes, from, to, ns) => {
          received += bytes.toString('latin1', from, to);
          stamps.push(ns);
        },
        shared,
        10,
        10 + length,
        stamps.length,
      );
      // The socket's next read overwrites it.
      shared.fill(0);
    }
    expect(received.length).toBeLessThan(sent.length);
    await new Promise<void>((resolve) => {
      queue.after(resolve);
    });
    expect(received === sent).toBe(true);
  }
  expect(stamps).toHaveLength(3000);
});
