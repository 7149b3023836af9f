import process from 'node:process';
import { afterEach, expect, test, vi } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { print, printData, reportError, notify, warn } from './output.js';
import { startProgress } from './progress.js';

// Must run before the imports, which decide on colors.
vi.hoisted(() => vi.stubEnv('FORCE_COLOR', '1'));

const tty = Object.getOwnPropertyDescriptor(process.stdout, 'isTTY');
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  if (tty) Object.defineProperty(process.stdout, 'isTTY', tty);
  else delete (process.stdout as { isTTY?: boolean }).isTTY;
});

test.each([
  [false, 'name\n\u001b[31mred\u202e\u001b[2J\n'],
  [true, 'name\nred\uFFFD\n'],
])('data are bytes for a program, and text without colors on a terminal: %s', (isTTY, expected) => {
  Object.defineProperty(process.stdout, 'isTTY', { value: isTTY, configurable: true });
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  printData('name\n\u001b[31mred\u202e\u001b[2J\n');
  expect(written.join('')).toBe(expected);
});

/** A title for a terminal, a color, a cleared screen, and marks that reorder a line. */
const hostile = 'a\u001b]0;title\u0007b\u001b[31mred\u001b[2J\u202egnp.exe\u2066\u200f\u009b2J';
// eslint-disable-next-line no-control-regex
const controlCharacters = /[\p{Cf}\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]|\u001b(?!\[\d+m)/u;

test.each<[string, () => void]>([
  ['a result', () => print(hostile)],
  ['a note', () => notify(hostile)],
  ['a warning', () => warn(hostile)],
  ['progress', () => startProgress(false).update(hostile)],
  ['a step that is done', () => startProgress(false).done(hostile, hostile)],
  [
    'an error in three parts',
    () => reportError(new InferscopeError('E_USAGE', { what: hostile, why: hostile, fix: hostile }), true),
  ],
  ['an internal error', () => reportError(new Error(hostile), true)],
])('%s steers no terminal and reorders no line', (_, show) => {
  expect(hostile).toMatch(controlCharacters);
  const written: string[] = [];
  const collect = (text: unknown) => written.push(String(text)) > 0;
  vi.spyOn(process.stdout, 'write').mockImplementation(collect);
  vi.spyOn(process.stderr, 'write').mockImplementation(collect);
  show();
  expect(written.join('')).toContain('gnp.exe');
  expect(written.join('')).not.toMatch(controlCharacters);
});
