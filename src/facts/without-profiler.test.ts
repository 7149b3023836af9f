import { expect, test } from 'vitest';
import { removeProfilerOverhead } from './without-profiler.js';

const bars = (overheadMs: number) =>
  Object.fromEntries(
    removeProfilerOverhead(
      [
        { id: 'roofline', ms: 1 },
        { id: 'exposed_copy.htod_pageable', ms: 2 },
        { id: 'exposed_copy.htod_pinned', ms: 3 },
        { id: 'host', ms: 0.5 },
        { id: 'unattributed', ms: 0 },
      ],
      overheadMs,
    ).map(({ id, ms }) => [id, ms]),
  );

test('subtracts the overhead from the host first, then from copies of pageable memory', () => {
  expect(bars(0.4)).toMatchObject({ host: 0.5 - 0.4, 'exposed_copy.htod_pageable': 2 });
  expect(bars(1.5)).toMatchObject({ host: 0, 'exposed_copy.htod_pageable': 1, unattributed: 0 });
});

test('does not change kernels and pinned copies: the remainder is not attributed', () => {
  expect(bars(4)).toMatchObject({
    roofline: 1,
    'exposed_copy.htod_pinned': 3,
    'exposed_copy.htod_pageable': 0,
    unattributed: -1.5,
  });
});
