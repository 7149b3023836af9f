import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { messageOf } from './errors.js';

test('a missing file is named as such, but not a missing program', () => {
  let error: unknown;
  try {
    readFileSync('no-such-file');
  } catch (caught) {
    error = caught;
  }
  expect(messageOf(error)).toBe('There is no such file.');
  expect(messageOf(spawnSync('no-such-program').error)).toContain('ENOENT');
});
