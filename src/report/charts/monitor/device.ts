import type { MonitorDevice, MonitorResult } from '../../../model/documents/monitor.js';
import { barColors, classColors, type Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { type Series, type Shade, telemetryHeight, telemetryOption } from '../telemetry.js';

/** What a device's chart shows, in this order; the document has the other series. */
const shown = [
  'utilization_percent',
  'memory_used_bytes',
  'power_w',
  'sm_clock_mhz',
  'memory_clock_mhz',
  'temperature_c',
];

const inMs = ({ scope, metric, unit, points }: MonitorResult['series'][number]): Series => ({
  scope,
  metric,
  unit,
  points: points.map(([ns, value]): [number, number] => [ns / 1e6, value]),
});

/** The series of one GPU, its power limit as a line of the power's panel. */
export function deviceSeries({ series, devices }: MonitorResult, scope: string): Series[] {
  const own = series.filter((one) => one.scope === scope);
  // Instances of a GPU, and some tools, tell the power of the moment only.
  const power = own.some(({ metric }) => metric === 'power_w') ? 'power_w' : 'power_instant_w';
  const metrics = shown.map((metric) => (metric === 'power_w' ? power : metric));
  const lines = metrics.flatMap((metric) => own.filter((one) => one.metric === metric)).map(inMs);
  const limit = devices.find((device) => device.scope === scope)?.power.limit_w.value ?? null;
  const drawn = lines.find(({ metric }) => metric === power);
  const [first, last] = [drawn?.points[0], drawn?.points.at(-1)];
  if (limit !== null && drawn && first && last) {
    const points: [number, number][] = [
      [first[0], limit],
      [last[0], limit],
    ];
    lines.push({ ...drawn, scope: 'limit', points });
  }
  return lines;
}

export const idleColor = (theme: Theme): string => barColors.idle[theme.dark ? 'dark' : 'light'];
export const throttleColor = classColors.sampling;

/** Idle periods, and those in which something held the clocks down. */
export function deviceShades(device: MonitorDevice | undefined, theme: Theme): Shade[] {
  if (!device) return [];
  const shade = (name: string, color: string) => (period: { start_ns: number; dur_ns: number }) => ({
    name,
    from_ms: period.start_ns / 1e6,
    to_ms: (period.start_ns + period.dur_ns) / 1e6,
    color,
  });
  return [
    ...device.idle.periods.map(shade('idle', idleColor(theme))),
    ...device.throttling.periods.map(shade('throttled', throttleColor)),
  ];
}

/** One GPU: a panel a metric over the recording; the part is its scope. */
export const monitorDeviceChart: Chart<MonitorResult> = {
  height: (result, scope) => telemetryHeight(deviceSeries(result, scope)),
  build: (input) => {
    const { result, part, theme } = input;
    const device = result.devices.find(({ scope }) => scope === part);
    return telemetryOption(input, deviceSeries(result, part), deviceShades(device, theme));
  },
};

export const hostSeries = ({ series }: MonitorResult): Series[] =>
  series.filter(({ scope }) => !scope.startsWith('gpu')).map(inMs);

export const monitorHostChart: Chart<MonitorResult> = {
  height: (result) => telemetryHeight(hostSeries(result)),
  build: (input) => telemetryOption(input, hostSeries(input.result)),
};
