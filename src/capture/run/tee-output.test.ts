import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { PassThrough, Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { teeOutput } from './tee-output.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-tee-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a viewer that closes while the program waits for it: the copy continues', async () => {
  const source = new PassThrough();
  const path = join(folder, 'stdout.log');
  const viewer = new Writable({ highWaterMark: 1, write: () => {} });
  const output = teeOutput(source, path, viewer, []);
  source.write('first\n');
  await expect.poll(() => source.isPaused()).toBe(true);
  viewer.destroy();
  source.end('second\n');
  expect(await output.end(1000)).toBe('first\nsecond\n');
  expect(readFileSync(path, 'utf8')).toBe('first\nsecond\n');
});

test('a standard stream that stays open, and closes at each write: the copy continues', async () => {
  const source = new PassThrough();
  const path = join(folder, 'stderr.log');
  const viewer = new Writable();
  viewer.write = () => {
    process.nextTick(() => viewer.emit('close'));
    return false;
  };
  const output = teeOutput(source, path, viewer, []);
  for (const line of ['first\n', 'second\n', 'third\n']) {
    source.write(line);
    await setImmediate();
  }
  source.end();
  expect(await output.end(1000)).toBe('first\nsecond\nthird\n');
  expect(viewer.listenerCount('close')).toBe(0);
});
