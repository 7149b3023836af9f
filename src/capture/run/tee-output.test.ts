import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
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
