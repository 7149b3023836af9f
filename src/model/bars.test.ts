import { expect, test } from 'vitest';
import { barHeads, barParts, classOfBar, isExposedBar, isIdleBar, isKernelBar } from './bars.js';

test('a bar belongs to one family, and to a class where it is one of kernels', () => {
  const families = barHeads.map((head) => [isKernelBar(head), isExposedBar(head), isIdleBar(head)]);
  expect(families.every((of) => of.filter(Boolean).length <= 1)).toBe(true);
  const alone = barHeads.filter((head) => !isKernelBar(head) && !isExposedBar(head) && !isIdleBar(head));
  expect(alone).toEqual(['unattributed', 'profiler_overhead']);
  expect(classOfBar('inefficiency.gemm')).toBe('gemm');
  expect(classOfBar('host.program')).toBeNull();
  expect(barParts('exposed_copy.htod_pageable')).toEqual({ head: 'exposed_copy', tail: 'htod_pageable' });
  expect(barParts('nothing.of_ours')).toEqual({ head: null, tail: 'of_ours' });
});
