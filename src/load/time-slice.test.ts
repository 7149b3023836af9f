import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import process from 'node:process';
import { expect, test } from 'vitest';
import { askForShortSlices } from './time-slice.js';

test('the kernel reports slices of 0.1 ms for the thread and an unchanged priority', async () => {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const sched = () => (process.platform === 'linux' ? readFileSync('/proc/thread-self/sched', 'utf8') : '');
  const priority = () => /^prio\s*:\s*(\d+)/m.exec(sched())?.[1];
  const before = priority();
  const isGranted = await askForShortSlices();
  expect(priority()).toBe(before);
  const slice = /^se\.slice\s*:\s*(\d+)/m.exec(sched())?.[1];
  // /proc shows slices since 6.12, depending on the build.
  if (slice !== undefined && (major > 6 || (major === 6 && minor >= 12))) {
    expect(isGranted).toBe(true);
    expect(Number(slice)).toBe(100_000);
  } else if (process.platform !== 'linux') expect(isGranted).toBe(false);
});
