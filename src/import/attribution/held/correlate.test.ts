import { expect, test } from 'vitest';
import { correlate } from './correlate.js';
import { eventArrays, heldEvents } from './held-trace.js';

/** [pid, start, duration, correlation] each; the combination is the pid. */
function events(rows: [number, number, number, number][]) {
  const arrays = eventArrays(rows.length, false);
  rows.forEach(([pid, start, dur, id], row) => {
    arrays.start_ns[row] = start;
    arrays.dur_ns[row] = dur;
    arrays.correlation[row] = id;
    arrays.shape[row] = pid;
  });
  return heldEvents(arrays, rows.length, false, { pid: Float64Array.of(0, 1) });
}

test.each([1, 1e9])('ids belong to their process, the outer of two calls counts; ids %i apart', (apart) => {
  const calls = events([
    [0, 10, 5, 1 * apart],
    [1, 20, 5, 1 * apart],
    // A runtime call and the driver call inside it; then two that begin together.
    [0, 30, 9, 2 * apart],
    [0, 31, 5, 2 * apart],
    [0, 40, 2, 3 * apart],
    [0, 40, 8, 3 * apart],
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
  const kernels = events(ids.map(([pid, id], row) => [pid, 100 + row, 1, id * apart]));
  const found = correlate(calls, kernels, events([]));
  expect([...found.kernels]).toEqual([0, 1, 2, 5, -1, -1, -1]);
  expect(found.shared).toBe(2);
});
