import { expect, test } from 'vitest';
import { noteOf } from './bar-facts.js';
import type { GroupSums } from './window-rows.js';

/** The note of GEMMs that take `measuredMs` where the measured peak allows `limitMs`. */
function noteOfGemms(measuredMs: number, limitMs: number, throttledShare: number | null): string | null {
  const mean = { classes: new Map([['gemm', measuredMs]]) };
  const sums = { mean, group: { kind: 'prefill' }, earlier: new Map() } as unknown as GroupSums;
  return noteOf('inefficiency.gemm', measuredMs - limitMs, {
    sums,
    raw: [],
    parts: [],
    need: null,
    throttledShare,
  });
}

test('throttled clocks explain GEMMs that are faster than the measured peak, but not than the data sheet', () => {
  // The measured peak is 0.7 of the data sheet's, so 7 ms of 10 ms are possible with full clocks, 6 ms are not.
  expect(noteOfGemms(7.5, 10, 0.7)).toContain('clocks were throttled');
  expect(noteOfGemms(6, 10, 0.7)).toContain('do not match the run');
  expect(noteOfGemms(9, 10, null)).toContain('do not match the run');
});
