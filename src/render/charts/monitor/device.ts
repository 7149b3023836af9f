import { deviceSeries, hostSeries } from '../../../views/monitor-series.js';
import type { MonitorDevice, MonitorResult } from '../../../model/documents/monitor.js';
import { barColors, classColors, type Theme } from '../../palette.js';
import type { Chart } from '../chart.js';
import { type Shade, telemetryHeight, telemetryOption } from '../telemetry.js';

const idleColor = (theme: Theme): string => barColors.idle[theme.dark ? 'dark' : 'light'];
const throttleColor = classColors.sampling;

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
  key: (result, scope, theme) => [
    ...new Map(
      deviceShades(
        result.devices.find((device) => device.scope === scope),
        theme,
      ).map(({ name, color }) => [name, { name, color }]),
    ).values(),
  ],
  build: (input) => {
    const { result, part, theme } = input;
    const device = result.devices.find(({ scope }) => scope === part);
    return telemetryOption(input, deviceSeries(result, part), deviceShades(device, theme));
  },
};

export const monitorHostChart: Chart<MonitorResult> = {
  height: (result) => telemetryHeight(hostSeries(result)),
  build: (input) => telemetryOption(input, hostSeries(input.result)),
};
