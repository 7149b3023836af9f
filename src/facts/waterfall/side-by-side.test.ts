import { expect, test } from 'vitest';
import { barsSideBySide } from './side-by-side.js';

const bars = (values: Record<string, number>) =>
  Object.entries(values).map(([id, ms]) => ({ id, label: id, ms }));
const valuesOf = (...sides: (Record<string, number> | null)[]) =>
  Object.fromEntries(
    barsSideBySide(sides.map((side) => side && bars(side))).map(({ id, values }) => [id, values]),
  );

test('a bar that needs the roofline is unknown, not 0, where the roofline is unknown', () => {
  const split = { roofline: 4, 'inefficiency.gemm': 1, 'host.program': 2 };
  const whole = { 'kernels.gemm': 5, launch_overhead: 1 };
  expect(valuesOf(split, whole)).toEqual({
    roofline: [4, null],
    'inefficiency.gemm': [1, null],
    'kernels.gemm': [null, 5],
    'host.program': [2, 0],
    launch_overhead: [0, 1],
  });
});

test('a bar that one of two split sides does not have is 0, one of a side without a waterfall null', () => {
  expect(valuesOf({ roofline: 4, 'kernels.other': 1 }, { roofline: 4 }, null)).toEqual({
    roofline: [4, 4, null],
    'kernels.other': [1, 0, null],
  });
});
