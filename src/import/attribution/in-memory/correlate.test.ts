import { expect, test } from 'vitest';
import { correlate } from './correlate.js';
import { eventArrays, sortedEvents } from './trace.js';

/** [pid, start, duration, correlation] each; the combination is the pid, or its place in `pids`. */
function events(rows: [number, number, number, number][], pids = [0, 1]) {
  const arrays = eventArrays(rows.length, false);
  rows.forEach(([pid, start, dur, id], row) => {
    arrays.start_ns[row] = start;
    arrays.dur_ns[row] = dur;
    arrays.correlation[row] = id;
    arrays.shape[row] = pids.indexOf(pid);
  });
  return sortedEvents(arrays, rows.length, false, { pid: Float64Array.from(pids) });
}

test.each([1, 1e9])('ids are per process, and the outer of two calls counts; ids %i apart', (distance) => {
  const calls = events([
    [0, 10, 5, 1 * distance],
    [1, 20, 5, 1 * distance],
    // A runtime call and the driver call inside it; then two that start together.
    [0, 30, 9, 2 * distance],
    [0, 31, 5, 2 * distance],
    [0, 40, 2, 3 * distance],
    [0, 40, 8, 3 * distance],
    [0, 50, 1, Number.NaN],
  ]);
  const ids: [number, number][] = [
    [0, 1],
    [1, 1],
    [0, 2],
    [0, 3],
    [1, 2],
    [0, 9],
    [0, Number.NaN],
  ];
  const kernels = events(ids.map(([pid, id], row) => [pid, 100 + row, 1, id * distance]));
  const correlated = correlate(calls, kernels, events([]));
  expect([...correlated.kernels]).toEqual([0, 1, 2, 5, -1, -1, -1]);
  expect(correlated.shared).toBe(2);
});

test('ids without a call are not found, in any order', () => {
  const processIds = [3, 4, 7, 8, 9, 40, 41, 500];
  const calls = events(
    processIds.map((id, row) => [1, row, 1, id]),
    [1],
  );
  const queriedIds = [3, 4, 5, 7, 41, 40, 500, 501, 499, 2, 3, 9, 8, Number.NaN, 42, 0.5];
  const kernels = events(queriedIds.map((id, row) => [1, row, 1, id]));
  const correlated = correlate(calls, kernels, events([[0, 5, 1, 7]]));
  expect([...correlated.kernels]).toEqual(queriedIds.map((id) => processIds.indexOf(id)));
  // The launch belongs to another process.
  expect([...correlated.copies]).toEqual([-1]);
  expect(correlated.shared).toBe(0);
});

test.each([
  ['no calls', []],
  ['calls without ids', [[1, 5, 1, Number.NaN]]],
] as [string, [number, number, number, number][]][])('%s: no kernel has a call', (_, calls) => {
  expect([...correlate(events(calls, [1]), events([[1, 6, 1, 3]]), events([])).kernels]).toEqual([-1]);
});
