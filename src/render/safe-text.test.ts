import { expect, test } from 'vitest';
import { safeJson, safeText } from './safe-text.js';

const hostile = 'a\u001b]0;title\u0007b\u001b[31mred\u001b[2J\u009b31m\u202egnp.exe\u2066\rc\u0000\u200f';

test('text: removes escape sequences, and replaces marks that reorder a line', () => {
  expect(safeText(hostile)).toBe('abred\uFFFDgnp.exe\uFFFD\uFFFDc\uFFFD\uFFFD');
  expect(safeText('one\n\ttwo – ünï 日本 👩\u200d🔬')).toBe('one\n\ttwo – ünï 日本 👩\u200d🔬');
});

test('text: keeps our own colors, and nothing else', () => {
  const painted = '\u001b[1m\u001b[31merror:\u001b[39m\u001b[22m \u001b[8mhidden\u001b[?25l';
  expect(safeText(painted, { colors: true })).toBe('\u001b[1m\u001b[31merror:\u001b[39m\u001b[22m hidden');
  expect(safeText(painted)).toBe('error: hidden');
});

test('JSON parses to the same value', () => {
  const json = safeJson(JSON.stringify({ name: hostile }, null, 2));
  // eslint-disable-next-line no-control-regex
  expect(json).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
  expect(JSON.parse(json)).toEqual({ name: hostile });
});
