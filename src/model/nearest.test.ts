import { expect, test } from 'vitest';
import { nearest } from './nearest.js';

const names = ['profile', 'memory-profile', 'sql', 'roofline'];

test.each([
  ['profil', 'profile'],
  ['rofline', 'roofline'],
  ['sqll', 'sql'],
  ['memory-porfile', 'memory-profile'],
  // Three letters, three changes: nobody meant that.
  ['foo', null],
  ['quantization', null],
])('%s means %s', (word, meant) => {
  expect(nearest(word, names)).toBe(meant);
});

test('of no names there is none', () => {
  expect(nearest('x', [])).toBeNull();
});
