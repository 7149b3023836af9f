import { expect, test } from 'vitest';
import { isAllocatorCall, isSynchronizing, waitPurpose } from './synchronizing-calls.js';

test.each([
  ['cudaStreamSynchronize', 'synchronize'],
  ['cudaDeviceSynchronize_v3020', 'synchronize'],
  ['cuStreamSynchronize_ptsz', 'synchronize'],
  ['cuCtxSynchronize_v2', 'synchronize'],
  ['cuMemcpyDtoH_v2', 'copy'],
  ['cudaMemcpy_ptds_v7000', 'copy'],
  ['cudaMemcpyAsync', null],
  ['hipMemset', 'copy'],
  ['cudaMemset', null],
  ['cudaMemset_v3020', null],
  ['cudaMalloc_v3020', 'allocator'],
  ['cuMemFree_v2', 'allocator'],
  ['cudaMallocAsync', null],
  ['cuMemCreate', null],
] as const)('%s waits for the device: %s', (name, purpose) => {
  expect(waitPurpose(name)).toBe(purpose);
  expect(isSynchronizing(name)).toBe(purpose !== null);
});

test.each([
  ['cudaMalloc_v3020', true],
  ['cuMemSetAccess', true],
  ['hipMallocAsync', true],
  ['cuMemAllocFromPoolAsync_ptsz', true],
  ['cuMemUnmap', true],
  ['cudaMemcpy', false],
  ['cuMemGetInfo_v2', false],
])('%s allocates or frees: %s', (name, allocates) => {
  expect(isAllocatorCall(name)).toBe(allocates);
});
