import { expect, test } from 'vitest';
import { reportedName } from './predict-device.js';

test('a GPU may be typed without its maker where one is called so; a family is none of its members', () => {
  expect(reportedName('H200')).toBe('NVIDIA H200');
  expect(reportedName('nvidia h200 ')).toBe('NVIDIA H200');
  expect(reportedName('T4')).toBe('Tesla T4');
  expect(reportedName('NVIDIA H200')).toBe('NVIDIA H200');
  expect(reportedName('H100')).toBe('H100');
  expect(reportedName('my accelerator')).toBe('my accelerator');
});
