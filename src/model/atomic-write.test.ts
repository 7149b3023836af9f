import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { writeAtomically } from './atomic-write.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-whole-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('replaces an existing file and creates its folder', () => {
  const path = join(folder, 'a', 'b', 'x.json');
  writeAtomically(path, 'first');
  writeAtomically(path, 'second', { mode: 0o600, flush: true });
  expect(readFileSync(path, 'utf8')).toBe('second');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(folder, 'a', 'b'))).toEqual(['x.json']);
});

test('writes the target of a link, which stays a link', () => {
  const target = join(folder, 'target');
  const link = join(folder, 'link');
  writeFileSync(target, '');
  symlinkSync(target, link);
  writeAtomically(link, 'text');
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readFileSync(target, 'utf8')).toBe('text');
});

test('a file that cannot be written is an error and leaves nothing', () => {
  const before = readdirSync(folder).sort();
  expect(() => writeAtomically(folder, 'text')).toThrow('EISDIR');
  expect(() => writeAtomically(join(folder, 'target', 'x'), 'text')).toThrow('ENOTDIR');
  expect(readdirSync(folder).sort()).toEqual(before);
});
