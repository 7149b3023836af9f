import { document, type Document } from '../model/document.js';
import type { MonitorDevice, MonitorResult } from '../model/documents/monitor.js';
import { figure, missing } from '../model/figure.js';
import { hostileText } from './test-profile.js';

const second = 1e9;
const share = (value: number) => figure(value, 'share', 'test');
const bytes = (gib: number) => figure(gib * 2 ** 30, 'B', 'test');

const metric = (name: string, unit: string, mean: number) => ({
  metric: name,
  unit,
  n: 40,
  mean,
  min: 0.5 * mean,
  p5: 0.6 * mean,
  median: mean,
  p95: 1.2 * mean,
  max: 1.5 * mean,
  first: mean,
  last: mean,
});

/** 4 s of one GPU: idle from 1 to 2 s, throttled by the power cap from 3 to 3.5 s. */
export function testMonitor(): Document<MonitorResult> {
  const points = (value: number) =>
    Array.from({ length: 41 }, (_, tick): [number, number] => [(tick * second) / 10, value + (tick % 5)]);
  const device: MonitorDevice = {
    scope: 'gpu0',
    name: 'NVIDIA H200',
    headline: 'gpu0: 67 % busy on average.',
    metrics: [metric('utilization_percent', '%', 67), metric('power_w', 'W', 400)],
    idle: { share: share(0.25), count: 1, longest_ms: 1000, periods: [{ start_ns: second, dur_ns: second }] },
    throttling: {
      share: share(0.125),
      count: 300,
      reasons: [{ reason: 'sw_power_cap', label: 'power cap', share: 0.125 }],
      periods: [
        {
          start_ns: 3 * second,
          dur_ns: 0.5 * second,
          reasons: ['sw_power_cap'],
          clock_mhz: 1485,
          clock_drop: 0.25,
        },
      ],
    },
    clock: { usual_mhz: figure(1980, 'MHz', 'test'), dropped_share: share(0.185) },
    power: {
      limit_w: figure(700, 'W', 'test'),
      near_limit_share: share(0.125),
      capped_share: share(0.125),
      energy_j: figure(1200, 'J', 'energy counter'),
    },
    memory: {
      total_bytes: bytes(80),
      first_bytes: bytes(10),
      peak_bytes: bytes(14),
      last_bytes: bytes(14),
      growth_bytes: bytes(4),
    },
    processes: [{ pid: 4242, name: hostileText, here: true, peak_bytes: 1, last_bytes: 1 }],
  };
  const series = (name: string, unit: string, value: number, scope = 'gpu0') => ({
    scope,
    metric: name,
    unit,
    points: points(value),
  });
  return document(
    'monitor',
    '1.0',
    {
      session: {
        id: 'm',
        name: null,
        title: 'GPUs and host',
        started_at: '2026-11-21T09:00:00Z',
        status: 'complete',
      },
      plan: {
        source: 'live',
        tool: 'NVML',
        driver: '580.159.04',
        files: [],
        hz: 10,
        sample_cost_us: { gpus: { mean: 400, max: 4600 }, host: null },
        gpus: [{ scope: 'gpu0', name: 'NVIDIA H200' }],
        no_gpus: null,
        program: null,
        processes: [],
        pid_namespace: 'initial',
      },
      duration_s: figure(4, 's', 'test'),
      sample_hz: missing('too_short', 'One sample has no rate.'),
      thresholds: { idle_percent: 5, idle_ms: 500, busy_percent: 50, clock_drop: 0.9, near_limit: 0.95 },
      headlines: ['gpu0: 67 % busy on average.'],
      devices: [device],
      host: { metrics: [{ scope: 'process', ...metric('cores_busy', 'cores', 1.5) }] },
      series: [
        series('utilization_percent', '%', 67),
        series('power_w', 'W', 400),
        series('sm_clock_mhz', 'MHz', 1900),
        series('pcie_tx_mb_per_s', 'MB/s', 3),
        series('cores_busy', 'cores', 1.5, 'process'),
      ],
    },
    [],
  );
}
