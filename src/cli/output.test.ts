import process from 'node:process';
import { afterEach, expect, test, vi } from 'vitest';
import { printData } from './output.js';

// Before colours are decided.
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
])('data are bytes for a program, and text without colours on a terminal: %s', (isTTY, expected) => {
  Object.defineProperty(process.stdout, 'isTTY', { value: isTTY, configurable: true });
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  printData('name\n\u001b[31mred\u202e\u001b[2J\n');
  expect(written.join('')).toBe(expected);
});
