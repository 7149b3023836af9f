import { expect, test } from 'vitest';
import { figure } from '../model/figure.js';
import { waterfallBars } from './compare-waterfalls.js';

const texts = (count: number) => ({
  short: ['A', 'B', 'C'].slice(0, count),
  long: ['A · a', 'B · b', 'C · c'].slice(0, count),
  timeKinds: ['measured', 'measured', 'measured'].slice(0, count),
  columns: [],
});
const waterfall = (times: readonly (number | null)[]) => ({
  phase: 'decode' as const,
  profiled: false,
  times_ms: times.map((ms) => (ms === null ? null : figure(ms, 'ms', 'clean'))),
  bars: [{ id: 'launch', label: 'launch latency', values: [...times], changes: [] }],
});

test.each([
  [[10, 12], 'From A to B: change of each bar'],
  [[10, 12, 14], undefined],
  // The chart would subtract the missing side.
  [[10, null, 14], undefined],
  [[10, null], undefined],
])('times %j: draws the changes between two sides only', (times, label) => {
  const { difference } = waterfallBars(waterfall(times), texts(times.length));
  expect(difference?.label).toBe(label);
});
