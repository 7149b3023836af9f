import { afterAll, expect, test } from 'vitest';
import type { Row } from '../../../model/tables.js';
import { closeAll, contextOf, fired, type Part, stepRows } from '../test-steps.js';
import { hostBound } from './host-bound.js';
import { preemptedHost } from './preempted-host.js';

afterAll(closeAll);

const main = { pid: 7, tid: 7 };
/** 40 steps of 10 ms: the device works for `kernel` µs of each, and waits for the host in the remaining time. */
const steps = (kernel: number, more: Row<'kernels'> = main): Part[] => [
  { kernel: kernel / 2, more: { class: 'gemm', ...more } },
  { idle: { host: 10_000 - kernel } },
  { kernel: kernel / 2, more: { class: 'gemm', ...more } },
];
/** A sample every 50 ms; the thread waited for `percent` of each interval. */
const waits = (percent: number, more: Row<'telemetry'> = {}, untilMs = 400): Row<'telemetry'>[] =>
  Array.from({ length: untilMs / 50 + 1 }, (_, index) => ({
    pid: 7,
    t_ns: index * 50e6,
    scope: 'thread7',
    metric: 'run_delay_percent',
    value: percent,
    ...more,
  }));
const context = (kernel: number, telemetry: Row<'telemetry'>[], more?: Row<'kernels'>) =>
  contextOf({ ...stepRows('decode', 40, () => steps(kernel, more)), telemetry });

test('claims half of a host-bound step, 5 of 10 ms, and leaves the remainder as host time', async () => {
  // The device works 2 ms and waits 8; the thread waits for a core for 5 of 10 ms.
  const halfWaiting = await context(2000, waits(50));
  const { gain, at_stake_ms } = fired(await preemptedHost.find(halfWaiting));
  expect(at_stake_ms).toBeCloseTo(5, 2);
  expect(gain!.expected_ms).toBeCloseTo(5, 2);
  // If the waits are evenly distributed: 5 × 8 / 10.
  expect(gain!.low_ms).toBeCloseTo(4, 2);
  expect(fired(await hostBound.find(halfWaiting)).gain!.expected_ms).toBeCloseTo(3, 2);
  expect(fired(await hostBound.find(await context(2000, []))).gain!.expected_ms).toBeCloseTo(8, 2);
});

/** Exact times without a core, by nsys's context switches: 1 ms in each step of 10 ms, from 2 ms on. */
const switches = (tid: number): Row<'telemetry'>[] => {
  const at = (t_ns: number, value: number): Row<'telemetry'> => ({
    pid: 7,
    t_ns,
    scope: `thread${tid}`,
    metric: 'preempted_percent',
    value,
  });
  const waitsPerStep = Array.from({ length: 40 }, (_, step) => [
    at(step * 10e6 + 2e6, 0),
    at(step * 10e6 + 3e6, 100),
  ]);
  return [at(0, 0), ...waitsPerStep.flat(), at(400e6, 0)];
};

test('reads the context switches of nsys for any launching thread, and prefers the counter of the kernel', async () => {
  const launcher = { pid: 7, tid: 8 };
  const other = fired(await preemptedHost.find(await context(2000, switches(8), launcher)));
  expect(other.gain!.expected_ms).toBeCloseTo(1, 5);
  expect(other.cause).toContain('context switches of nsys, 40 instances');
  const both = fired(await preemptedHost.find(await context(2000, [...switches(7), ...waits(50)])));
  expect(both.gain!.expected_ms).toBeCloseTo(5, 2);
  expect(both.cause).toContain('counted by the kernel');
});

test('claims at most the time in which the device waits for the host', async () => {
  const { gain } = fired(await preemptedHost.find(await context(6000, waits(90))));
  expect(gain!.expected_ms).toBeCloseTo(4, 2);
});

test.each<[string, string, number, Row<'telemetry'>[], Row<'kernels'>?]>([
  ['it hardly waits', 'not_fired', 2000, waits(4)],
  ['the device is busy: queued work covers it', 'not_fired', 8000, waits(50)],
  ['another thread launches', 'not_applicable', 2000, waits(50), { pid: 7, tid: 8 }],
  ['the main thread of another process waits', 'not_applicable', 2000, waits(50, { pid: 9 })],
  [
    'samples of another run, later',
    'not_applicable',
    2000,
    waits(50).map((row) => ({ ...row, t_ns: row.t_ns! + 1e9 })),
  ],
  ['only the first half was sampled', 'not_applicable', 2000, waits(50, {}, 200)],
  ['context switches of a thread that does not launch', 'not_applicable', 2000, switches(9)],
  ['no samples', 'not_applicable', 2000, []],
])('%s: %s', async (_why, outcome, kernel, telemetry, more) => {
  expect((await preemptedHost.find(await context(kernel, telemetry, more))).outcome).toBe(outcome);
});
