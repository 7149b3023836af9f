import { expect, test } from 'vitest';
import {
  barHeads,
  barParts,
  barRank,
  classOfBar,
  isCopyBar,
  isExposedBar,
  isIdleBar,
  isKernelBar,
} from './bars.js';
import { barIdSchema } from './documents/bar-id.js';

test('a bar belongs to one family, and a bar of kernels to a class', () => {
  const families = barHeads.map((head) => [isKernelBar(head), isExposedBar(head), isIdleBar(head)]);
  expect(families.every((drawn) => drawn.filter(Boolean).length <= 1)).toBe(true);
  const otherHeads = barHeads.filter((head) => !isKernelBar(head) && !isExposedBar(head) && !isIdleBar(head));
  expect(otherHeads).toEqual(['unattributed', 'profiler_overhead']);
  expect(classOfBar('inefficiency.gemm')).toBe('gemm');
  expect(classOfBar('host.program')).toBeNull();
  expect(barParts('exposed_copy.htod_pageable')).toEqual({ head: 'exposed_copy', tail: 'htod_pageable' });
  expect(barParts('nothing.of_ours')).toEqual({ head: null, tail: 'of_ours' });
});

test('a bar id starts with one of the known kinds of bar', () => {
  const ids = ['roofline', 'inefficiency.gemm', 'exposed_copy.htod_pageable', 'host', 'host.loop'];
  expect(ids.filter((id) => !barIdSchema.safeParse(id).success)).toEqual([]);
  const otherIds = ['', 'gemm', 'hosts', 'hosts.loop', 'host.', 'my.host.loop'];
  expect(otherIds.filter((id) => barIdSchema.safeParse(id).success)).toEqual([]);
  expect([isCopyBar(ids[2]!, 'htod'), isCopyBar(ids[2]!, 'dtoh')]).toEqual([true, false]);
  expect(ids.map(barRank)).toEqual(ids.map(barRank).toSorted((a, b) => a - b));
});
