import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { testFolder } from '../../src/session/test-folder.js';

const storedNumbers = 'test/golden/core.txt';
const script = 'test/golden/documents.mjs';

test('tables and bars of four recorded sessions equal the golden file', () => {
  const folder = testFolder();
  const file = join(folder, 'core.txt');
  const { status, stderr } = spawnSync(process.execPath, [script, 'core', file], { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  const current = new Set(readFileSync(file, 'utf8').split('\n'));
  const stored = readFileSync(storedNumbers, 'utf8').trimEnd().split('\n');
  expect(stored.length).toBeGreaterThan(200);
  // New columns and bars are allowed. After a deliberate change: node test/golden/documents.mjs core test/golden/core.txt
  expect(stored.filter((line) => !current.has(line))).toEqual([]);
});
