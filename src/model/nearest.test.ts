import { expect, test } from 'vitest';
import { nearest, nearestNames } from './nearest.js';

const names = ['profile', 'memory-profile', 'sql', 'roofline'];

test.each([
  ['profil', 'profile'],
  ['rofline', 'roofline'],
  ['sqll', 'sql'],
  ['memory-porfile', 'memory-profile'],
  // Three changes in three letters are another word.
  ['foo', null],
  ['nope', null],
  ['quantization', null],
])('%s means %s', (word, suggestion) => {
  expect(nearest(word, names)).toBe(suggestion);
});

test('without names there is no nearest one', () => {
  expect(nearest('x', [])).toBeNull();
});

test('many names: lists those that start with the typed text, nearest first, else the first ones', () => {
  const models = ['llama-24m', 'llama-3.1-8b', 'mistral-7b', 'qwen3-8b'];
  expect(nearestNames(models, 'llama-3-8b', 1)).toBe('llama-3.1-8b and 3 more');
  expect(nearestNames(models, 'lama-24m', 1)).toBe('llama-24m and 3 more');
  expect(nearestNames(models, 'foo', 2)).toBe('llama-24m, llama-3.1-8b and 2 more');
  expect(nearestNames(models, 'foo')).toBe('llama-24m, llama-3.1-8b, mistral-7b, qwen3-8b');
});

test('capital letters do not count', () => {
  const gpus = ['A10G', 'H100 PCIe', 'H100 SXM5 80GB', 'H200'];
  expect(nearest('h20o', gpus)).toBe('H200');
  expect(nearest('h100 p', gpus)).toBe('H100 PCIe');
  expect(nearestNames(gpus, 'h100-nvl', 2)).toBe('H100 PCIe, H100 SXM5 80GB and 2 more');
});
