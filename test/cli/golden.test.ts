import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';

const storedNumbers = 'test/golden/core.txt';
const script = 'test/golden/documents.mjs';

test('tables and bars of four recorded sessions equal the golden file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-golden-'));
  const file = join(folder, 'core.txt');
  const { status, stderr } = spawnSync(process.execPath, [script, 'core', file], { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  const now = new Set(readFileSync(file, 'utf8').split('\n'));
  rmSync(folder, { recursive: true, force: true });
  const before = readFileSync(storedNumbers, 'utf8').trimEnd().split('\n');
  expect(before.length).toBeGreaterThan(200);
  // A new column or bar is an addition. After a deliberate change: node test/golden/documents.mjs core test/golden/core.txt
  expect(before.filter((line) => !now.has(line))).toEqual([]);
});
