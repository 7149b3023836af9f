import { expect, test } from 'vitest';
import { figure, missing } from './figure.js';
import { headlineQuantiles } from './headline-time.js';

test('quantiles are those of the execution that the headline time is from', () => {
  const measured_ms = figure(21.7, 'ms', 'under the profiler', { n: 40 });
  const clean_ms = figure(4.3, 'ms', 'clean', { n: 40, median: 2.9, p10: 2.3 });
  const profiled = { measured_ms, instances: 40, median_ms: 21.1, p10_ms: 12.8 };
  expect(headlineQuantiles({ ...profiled, clean_ms })).toEqual({ median: 2.9, p10: 2.3 });
  const unknown = missing('no_clean_execution', 'only profiled');
  expect(headlineQuantiles({ ...profiled, clean_ms: unknown })).toEqual({ median: 21.1, p10: 12.8 });
  // A record without a profiler has one time.
  expect(headlineQuantiles({ ...profiled, clean_ms: measured_ms })).toEqual({ median: 21.1, p10: 12.8 });
  expect(headlineQuantiles({ ...profiled, instances: 3, clean_ms: unknown })).toEqual({
    median: null,
    p10: null,
  });
  const few = { ...clean_ms, n: 3 };
  expect(headlineQuantiles({ ...profiled, clean_ms: few })).toEqual({ median: null, p10: null });
});
