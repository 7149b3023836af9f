import { expect, test } from 'vitest';
import { capitalize } from './sentence.js';

test.each([
  ['it exited', 'It exited'],
  ['vLLM started', 'vLLM started'],
  ['cuBLAS logs', 'cuBLAS logs'],
])('%s at the start of a sentence is %s', (text, sentence) => {
  expect(capitalize(text)).toBe(sentence);
});
