import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect, test } from 'vitest';
import { createScratch, removeAbandoned, scratchName } from './scratch.js';

const folder = mkdtempSync(join(tmpdir(), 'scratch-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('removes only leftovers of exited processes', () => {
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  const running = scratchName('inferscope-scratch');
  const abandoned = running.replace(`-${process.pid}-`, `-${gone}-`);
  const elsewhere = abandoned.replace(/-[0-9a-f]{8}-([0-9a-f]+)$/, '-00000000-$1');
  const notOurs = abandoned.replace('scratch', 'other');
  for (const name of [running, abandoned, elsewhere, notOurs, 'scratch']) mkdirSync(join(folder, name));
  removeAbandoned(folder, 'inferscope-scratch');
  expect(readdirSync(folder).sort()).toEqual([running, elsewhere, notOurs, 'scratch'].sort());
});

test('a scratch folder removes leftovers before it is created, and is removed by remove()', () => {
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  const abandoned = join(folder, scratchName('x').replace(`-${process.pid}-`, `-${gone}-`));
  mkdirSync(abandoned);
  const { path, remove } = createScratch(folder, 'x');
  expect([existsSync(abandoned), existsSync(path)]).toEqual([false, true]);
  remove();
  expect(existsSync(path)).toBe(false);
});
