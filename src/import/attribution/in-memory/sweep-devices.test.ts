import { expect, test } from 'vitest';
import { hostThreads, threadOf } from '../host-threads.js';
import { sweepDevicesInMemory } from './sweep-devices.js';
import { eventArrays, sortedEvents } from './trace.js';
import type { InMemoryEvents } from './events.js';

/** [start, duration, stream, id] each; combinations 0 to 9 are streams of device 0, 10 to 19 of device 1. */
type Activity = [start: number, dur: number, stream: number, id?: number];

function events(rows: Activity[], graphs: readonly number[] = []): InMemoryEvents {
  const arrays = eventArrays(rows.length, false);
  rows.forEach(([start, dur, stream, id], row) => {
    arrays.start_ns[row] = start;
    arrays.dur_ns[row] = dur;
    arrays.shape[row] = stream;
    arrays.correlation[row] = id ?? Number.NaN;
  });
  const streams = Float64Array.from({ length: 20 }, (_, code) => code);
  const constantColumn = (value: number) => streams.map(() => value);
  return sortedEvents(arrays, rows.length, true, {
    pid: constantColumn(7),
    tid: constantColumn(1),
    rank: constantColumn(0),
    context: constantColumn(1),
    stream: streams,
    device: streams.map((code) => Math.floor(code / 10)),
    graph_node: streams.map((code) => (graphs.includes(code) ? 1 : Number.NaN)),
  });
}

function runSweep(input: {
  kernels: Activity[];
  copies?: Activity[];
  calls?: Activity[];
  launchedBy?: number[];
  communication?: number[];
  graphs?: number[];
  waits?: [number, number][];
}) {
  const kernels = events(input.kernels, input.graphs);
  const copies = events(input.copies ?? [], input.graphs);
  const calls = events(input.calls ?? []);
  const orphans = (rows: number) => Int32Array.from({ length: rows }, () => -1);
  const host = hostThreads([]);
  for (const [from, to] of input.waits ?? []) threadOf(host, 7, 1).waiting.add(from, to);
  const priority = Uint8Array.from({ length: 20 }, (_, code) =>
    Number(input.communication?.includes(code) ?? false),
  );
  const withCalls = (part: InMemoryEvents, call: Int32Array) => ({
    events: part,
    call,
    place: new Int32Array(part.rows),
  });
  const { gaps, exclusive, launch, graphNode } = sweepDevicesInMemory(
    host,
    calls,
    withCalls(kernels, Int32Array.from(input.launchedBy ?? orphans(kernels.rows))),
    withCalls(copies, orphans(copies.rows)),
    priority,
  );
  return {
    exclusive: [...(exclusive.kernels ?? kernels.dur_ns)],
    copies: [...(exclusive.copies ?? copies.dur_ns)],
    // Activity, idle from, waited.
    gaps: Array.from({ length: gaps.count }, (_, i) => [
      gaps.activity[i],
      gaps.idle_ns[i],
      gaps.waiting_ns[i],
    ]),
    inGraph: [...gaps.inGraph.subarray(0, gaps.count)],
    launches: launch.launches,
    nodes: graphNode.launches,
  };
}

test('an overlap starts and ends in the middle of sequential activities', () => {
  const { exclusive, gaps } = runSweep({
    kernels: [
      [0, 10, 1],
      [20, 10, 1], // 20-30 alone
      [32, 10, 1], // 32-36 alone, 36-42 halved with the next
      [36, 10, 2], // 42-46 alone
      [46, 4, 1], // touches: alone again
      [60, 10, 1], // the whole of the next lies in it, on its own stream
      [62, 4, 1],
      [70, 5, 2],
    ],
  });
  expect(exclusive).toEqual([10, 10, 4 + 3, 3 + 4, 4, 10, 0, 5]);
  expect(gaps).toEqual([
    [1, 10, 0],
    [2, 30, 0],
    [5, 50, 0],
  ]);
});

test('each device is swept separately, in order', () => {
  const { exclusive, gaps } = runSweep({
    kernels: [
      [0, 10, 11],
      [5, 10, 1],
      [8, 10, 12], // halves 8-10 with the first
      [30, 5, 1],
      [30, 5, 11],
    ],
  });
  expect(exclusive).toEqual([9, 10, 9, 5, 5]);
  expect(gaps).toEqual([
    [3, 15, 0],
    [4, 18, 0],
  ]);
});

test('activities that start together: compute, communication, then copies, in table order', () => {
  const { exclusive, copies, gaps } = runSweep({
    kernels: [
      [0, 2, 1],
      [10, 8, 2], // communication: 10-16 hidden by the next
      [10, 6, 1],
    ],
    copies: [
      [10, 9, 3], // 18-19, halved with the next
      [10, 10, 4], // and 19-20 alone
    ],
    communication: [2],
  });
  expect(exclusive).toEqual([2, 2, 6]);
  // The first copy has the odd nanosecond.
  expect(copies).toEqual([1, 1]);
  // The device was idle until compute started.
  expect(gaps).toEqual([[2, 2, 0]]);
});

test('a gap has its call: graph nodes and orphans have none, and a wait counts until the call', () => {
  const { gaps, inGraph, launches, nodes } = runSweep({
    kernels: [
      [0, 10, 1, 1],
      [100, 10, 1, 2], // launched at 60 after waiting 20-50
      [120, 10, 5, 3], // two nodes of one graph, launched while the device was busy
      [140, 10, 5, 3],
      [170, 10, 5, 4], // another graph's
      [200, 10, 1, 9], // an orphan
    ],
    calls: [
      [-20, 5, 1],
      [60, 10, 1],
      [105, 10, 1],
      [152, 8, 1],
    ],
    launchedBy: [0, 1, 2, 2, 3, -1],
    graphs: [5],
    waits: [[20, 50]],
  });
  expect(gaps).toEqual([
    [1, 10, 30],
    [2, 110, 0],
    [3, 130, 0],
    [4, 150, 0],
    [5, 180, 0],
  ]);
  expect(inGraph).toEqual([0, 0, 1, 0, 0]);
  // Launched onto the idle device: the calls at 60 and 152.
  expect([launches, nodes]).toEqual([2, 1]);
});

test('no activities, and only copies', () => {
  expect(runSweep({ kernels: [] }).gaps).toEqual([]);
  expect(
    runSweep({
      kernels: [],
      copies: [
        [0, 5, 1],
        [8, 5, 1],
      ],
    }).gaps,
  ).toEqual([[-2, 5, 0]]);
});
