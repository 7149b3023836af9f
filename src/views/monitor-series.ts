import { isGpuScope } from '../vocabulary/sampled-metrics.js';
import type { MonitorDevice, MonitorResult } from '../model/documents/monitor.js';
import { classColors } from '../vocabulary/colors.js';
import type { LinesChart } from './chart.js';
import type { SampledSeries } from './samples.js';

/** Metrics in a device's chart, in this order; the document has all series. */
const deviceMetrics = [
  'utilization_percent',
  'memory_used_bytes',
  'power_w',
  'sm_clock_mhz',
  'memory_clock_mhz',
  'temperature_c',
];

const inMs = ({ scope, metric, unit, points }: MonitorResult['series'][number]): SampledSeries => ({
  scope,
  metric,
  unit,
  points: points.map(([ns, value]): [number, number] => [ns / 1e6, value]),
});

/** The series of one GPU; its power limit is a second line in the power panel. */
export function deviceSeries({ series, devices }: MonitorResult, scope: string): SampledSeries[] {
  const gpuSeries = series.filter((sampled) => sampled.scope === scope);
  // GPU instances, and some tools, report only instant power.
  const power = gpuSeries.some(({ metric }) => metric === 'power_w') ? 'power_w' : 'power_instant_w';
  const metrics = deviceMetrics.map((metric) => (metric === 'power_w' ? power : metric));
  const lines = metrics
    .flatMap((metric) => gpuSeries.filter((sampled) => sampled.metric === metric))
    .map(inMs);
  const limit = devices.find((device) => device.scope === scope)?.power.limit_w.value ?? null;
  const powerSeries = lines.find(({ metric }) => metric === power);
  const [first, last] = [powerSeries?.points[0], powerSeries?.points.at(-1)];
  if (limit !== null && powerSeries && first && last) {
    const points: [number, number][] = [
      [first[0], limit],
      [last[0], limit],
    ];
    lines.push({ ...powerSeries, scope: 'limit', points });
  }
  return lines;
}

export const hostSeries = ({ series }: MonitorResult): SampledSeries[] =>
  series.filter(({ scope }) => !isGpuScope(scope)).map(inMs);

/** Idle periods, and periods with throttled clocks. */
export function deviceShades({ idle, throttling }: MonitorDevice): NonNullable<LinesChart['shades']> {
  const seconds = ({ start_ns, dur_ns }: { start_ns: number; dur_ns: number }) => ({
    from: start_ns / 1e9,
    to: (start_ns + dur_ns) / 1e9,
  });
  return [
    ...idle.periods.map((period) => ({ name: 'idle', color: 'idle' as const, ...seconds(period) })),
    ...throttling.periods.map((period) => ({
      name: 'throttled',
      color: classColors.sampling,
      ...seconds(period),
    })),
  ];
}
