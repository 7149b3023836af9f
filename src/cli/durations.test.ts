import { describe, expect, test } from 'vitest';
import { durationParser, durationMs } from './durations.js';

describe('durations', () => {
  test.each([
    ['200ms', 200],
    ['1.5s', 1500],
    ['90 s', 90_000],
    ['10m', 600_000],
    ['10min', 600_000],
    ['2h', 7_200_000],
    ['800us', 0.8],
    // timeout(1) and sleep(1) also default to seconds.
    ['30', 30_000],
  ])('%s is %d ms', (text, ms) => {
    expect(durationMs(text)).toBeCloseTo(ms, 9);
    expect(durationParser('--timeout', { example: '10m' })(text)).toBeCloseTo(ms, 9);
  });

  test('a bare number of a latency target is milliseconds', () => {
    expect(durationMs('30', 'ms')).toBe(30);
  });

  test.each(['', 'soon', '10d', '-1s', '1e3', '0', '0ms', '25d', '600h'])('"%s" is rejected', (text) => {
    expect(() => durationParser('--timeout', { example: '10m' })(text)).toThrow('--timeout');
  });
});
