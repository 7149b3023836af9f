import { expect, test } from 'vitest';
import { isSynchronizing } from './synchronizing-calls.js';

test.each([
  ['cudaStreamSynchronize', true],
  ['cudaDeviceSynchronize_v3020', true],
  ['cuMemcpyDtoH_v2', true],
  ['cudaMemcpyAsync', false],
  ['hipMemset', true],
  ['cudaMemset', false],
  ['cudaMemset_v3020', false],
])('%s waits for the device: %s', (name, expected) => {
  expect(isSynchronizing(name)).toBe(expected);
});
