import type { MonitorDevice, MonitorMetric, MonitorResult } from '../../model/documents/monitor.js';
import {
  formatBytes,
  formatPercent,
  formatQuantity,
  formatSetting,
  plural,
} from '../../vocabulary/format.js';
import { scopeLabel } from '../../vocabulary/sampled-metrics.js';

function meanOf(metrics: readonly MonitorMetric[], metric: string): number | null {
  return metrics.find((series) => series.metric === metric)?.mean ?? null;
}

/**
 * One sentence per GPU: utilization over the recording, and throttling.
 * @param idlePercent utilization below this is idle
 */
export function deviceHeadline(device: MonitorDevice, idlePercent: number): string {
  const parts: string[] = [];
  const utilization = meanOf(device.metrics, 'utilization_percent');
  if (utilization !== null) parts.push(`${formatPercent(utilization / 100)} busy on average`);
  const { share, count } = device.idle;
  if (share.value !== null && count > 0)
    parts.push(
      share.value === 1
        ? `below ${formatSetting(idlePercent, '%')} (idle) the whole time`
        : `idle for ${formatPercent(share.value)} of the time in ${plural(count, 'period')}`,
    );
  const [worst] = device.throttling.reasons;
  if (worst) {
    const drop = dropOf(device);
    const clock = drop === null ? '' : `, with a ${formatPercent(drop)} lower SM clock`;
    parts.push(
      `throttled for ${formatPercent(device.throttling.share.value ?? 0)} of the time (mostly ${worst.label}${clock})`,
    );
  }
  const power = meanOf(device.metrics, 'power_w') ?? meanOf(device.metrics, 'power_instant_w');
  if (power !== null) {
    const limit = device.power.limit_w.value;
    parts.push(
      `${formatQuantity(power, 'W', 2)}${limit === null ? '' : ` of ${formatQuantity(limit, 'W', 2)}`}`,
    );
  }
  return parts.length === 0
    ? `${scopeLabel(device.scope)}: the source has neither utilization nor power.`
    : `${scopeLabel(device.scope)}: ${parts.join(', ')}.`;
}

/** Mean clock drop over the throttled time; null without throttling or a usual clock. */
function dropOf({ throttling }: MonitorDevice): number | null {
  const throttledPeriods = throttling.periods.flatMap(({ dur_ns, clock_drop }) =>
    clock_drop === null ? [] : [{ dur_ns, clock_drop }],
  );
  const total = throttledPeriods.reduce((sum, { dur_ns }) => sum + dur_ns, 0);
  if (total === 0) return null;
  const drop = throttledPeriods.reduce((sum, { dur_ns, clock_drop }) => sum + dur_ns * clock_drop, 0) / total;
  return drop > 0.005 ? drop : null;
}

export function headlines(data: MonitorResult): string[] {
  const deviceHeadlines = data.devices.map(({ headline }) => headline);
  const cpu = data.host.metrics.find(
    ({ scope, metric }) => scope === 'host' && metric === 'utilization_percent',
  );
  const idleDevice = data.devices.find(({ idle }) => (idle.share.value ?? 0) > 0.2);
  if (cpu && cpu.mean > 80 && idleDevice)
    deviceHeadlines.push(
      `The host's CPUs were ${formatQuantity(cpu.mean, '%')} busy while ${scopeLabel(idleDevice.scope)} was idle: it may have waited for the host.`,
    );
  const growing = data.devices.find(({ memory }) => (memory.growth_bytes.value ?? 0) > 2 ** 30);
  if (growing)
    deviceHeadlines.push(
      `Memory in use on ${scopeLabel(growing.scope)} grew by ${formatBytes(growing.memory.growth_bytes.value ?? 0)} from first to last sample.`,
    );
  return deviceHeadlines;
}
