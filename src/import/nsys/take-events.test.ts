import { expect, test } from 'vitest';
import { eventArrays, sortedEvents } from '../attribution/in-memory/trace.js';
import { UnreadableRows } from './damage.js';
import { takeEvents } from './take-events.js';

const column = (...values: number[]) => Float64Array.from(values);
const limit_ns = 2 ** 53;

test('two kinds of events fill the same arrays in sequence; invalid rows are counted and dropped', () => {
  const into = eventArrays(7, true);
  const first = takeEvents({ into, first_row: 0, first_code: 0, offset_ns: 100, limit_ns });
  first.take({
    rows: 3,
    columns: {
      start: column(10, 20, 30),
      // The second ends before it starts.
      end: column(15, 19, 30),
      correlationId: column(1, 2, Number.NaN),
      shape: column(2 ** 52, 7, 2 ** 52),
      bytes: column(64, 65, 66),
    },
  });
  first.take({
    rows: 2,
    columns: {
      start: column(Number.NaN, 40),
      end: column(50, 2 ** 53),
      correlationId: column(3, 4),
      shape: column(8, 7),
      bytes: column(67, 68),
    },
  });
  const copies = first.result();
  expect(copies).toEqual({
    rows: 2,
    impossible: 3,
    oversized: 0,
    sorted: true,
    keys: column(2 ** 52, 7, 8),
    first_rows: column(0, 1, 3),
    counts: column(2, 2, 1),
  });

  const second = takeEvents({ into, first_row: 2, first_code: 3, offset_ns: 100, limit_ns });
  second.take({
    rows: 3,
    columns: {
      start: column(9, 40, 25),
      end: column(9, 41, 35),
      correlationId: column(5, 6, 7),
      shape: column(7, 7, 9),
      bytes: column(-1, 2 ** 63, 3),
    },
  });
  expect(second.result()).toMatchObject({
    rows: 3,
    impossible: 0,
    oversized: 2,
    sorted: false,
    keys: column(7, 9),
  });
  expect(sortedEvents(into, 5, false, {})).toEqual({
    rows: 5,
    start_ns: column(109, 110, 125, 130, 140),
    dur_ns: column(0, 5, 10, 0, 1),
    correlation: column(5, 1, 7, Number.NaN, 6),
    shape: Int32Array.of(3, 0, 4, 0, 3),
    bytes: column(Number.NaN, 64, 3, 66, Number.NaN),
    shapes: {},
  });
});

test('more rows than the arrays have room for are an error', () => {
  const events = takeEvents({
    into: eventArrays(1, false),
    first_row: 0,
    first_code: 0,
    offset_ns: 0,
    limit_ns,
  });
  const two = column(1, 2);
  const columns = { start: two, end: two, correlationId: two, shape: two };
  expect(() => events.take({ rows: 2, columns })).toThrow(UnreadableRows);
});
