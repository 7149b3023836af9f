import { expect, test } from 'vitest';
import { weightFormatLabel } from '../vocabulary/weight-formats.js';
import { schemeNames } from './quantization.js';

test('every weight format has the name that people use, and no two have the same', () => {
  const labels = schemeNames.map(weightFormatLabel);
  expect(new Set(labels).size).toBe(schemeNames.length);
  for (const [i, label] of labels.entries()) expect(label).not.toBe(schemeNames[i]);
  expect(weightFormatLabel('gguf-q4_k')).toBe('GGUF Q4_K');
  expect(weightFormatLabel('bfloat16')).toBe('bfloat16');
});
