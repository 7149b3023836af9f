import { expect, test } from 'vitest';
import { figure, missing } from '../../model/figure.js';
import { benchParts, type BenchTimes } from './bench-parts.js';

const notSampled = missing('no_samples', 'no samples');

/**
 * A decode step of 10 ms: 9 ms in the call, 8 ms between device events. The device is busy for 3 ms, of which 100
 * kernels take 2.5 ms.
 */
const step: BenchTimes = {
  kind: 'decode',
  measuredMs: 10,
  necessary: missing('no_model', 'no model'),
  kernelMs: 2.5,
  busyMs: 3,
  kernels: 100,
  host: { callMs: 9, samplingMs: 0.4, deviceMs: 8, stages: 4 },
  threads: null,
  onCpu: false,
  nodeNs: null,
  machine: { cpu_cores_busy: notSampled, gpu_utilization_percent: notSampled },
  decodeShare: 0.9,
};
const barsOf = (change: Partial<BenchTimes>) =>
  Object.fromEntries(
    benchParts({ ...step, ...change }).parts.map(({ id, ms }) => [id, Number(ms.toFixed(9))]),
  );
const known = {
  'kernels.kernels': 2.5,
  'exposed_copy.all': 0.5,
  'host.program': 1,
  'host.sampling': 0.4,
  'host.loop': 0.6,
};

test('splits a step by time stamps and device events, without a bar for idle time between kernels', () => {
  expect(barsOf({})).toEqual(known);
});

test('assigns device idle time to the host in proportion to its busy cores', () => {
  const cores = (value: number) => ({
    machine: { ...step.machine, cpu_cores_busy: figure(value, 'cores', 'telemetry') },
  });
  expect(barsOf(cores(1.2))).toEqual({ ...known, 'host.dispatch': 5 });
  expect(barsOf(cores(0.5))).toEqual({ ...known, 'host.dispatch': 2.5 });
  expect(benchParts({ ...step, ...cores(1) }).notes.get('host.dispatch')).toContain(
    '50.0 µs of idle time each',
  );
});

test('assigns launch latency per node of a replayed graph', () => {
  expect(barsOf({ nodeNs: 1000 })).toEqual({ ...known, launch_latency: 0.1 });
  // At most the idle time of the device.
  expect(barsOf({ nodeNs: 1e6 })['launch_latency']).toBe(5);
});

test('takes busy time from sampled GPU utilization when the repeat is mostly decoding', () => {
  const notProfiled = {
    kernelMs: null,
    busyMs: null,
    host: null,
    machine: { ...step.machine, gpu_utilization_percent: figure(60, '%', 'telemetry: gpu0') },
  };
  expect(barsOf(notProfiled)).toEqual({ 'kernels.kernels': 6 });
  expect(barsOf({ ...notProfiled, decodeShare: 0.5 })).toEqual({});
});

test('assigns idle cores on a CPU to the threads without a core', () => {
  const cpu = {
    onCpu: true,
    threads: 4,
    kernelMs: null,
    busyMs: null,
    machine: { ...step.machine, cpu_cores_busy: figure(3, 'cores', 'telemetry') },
    host: { callMs: 8, samplingMs: 0.5, deviceMs: null, stages: 4 },
  };
  expect(barsOf(cpu)).toEqual({ 'host.idle_cores': 2, 'host.sampling': 0.5, 'host.loop': 1.5 });
});
