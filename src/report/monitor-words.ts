import type { MonitorDevice, MonitorMetric, MonitorResult } from '../model/documents/monitor.js';
import type { Figure } from '../model/figure.js';
import { formatBytes, formatNumber, formatPercent, formatQuantity, nbsp, noValue } from './format.js';

/** Words of a recording that terminal and page share. */

const words: Record<string, string> = {
  utilization_percent: 'busy',
  memory_utilization_percent: 'memory controller busy',
  memory_used_bytes: 'memory in use',
  power_w: 'power (1 s mean)',
  power_instant_w: 'power (instant)',
  sm_clock_mhz: 'SM clock',
  memory_clock_mhz: 'memory clock',
  temperature_c: 'temperature',
  memory_temperature_c: 'memory temperature',
  pcie_tx_mb_per_s: 'PCIe out',
  pcie_rx_mb_per_s: 'PCIe in',
  nvlink_tx_mb_per_s: 'NVLink out',
  nvlink_rx_mb_per_s: 'NVLink in',
  fan_speed_percent: 'fan',
  cores_busy: 'cores busy',
  steal_percent: 'stolen by other machines',
  rss_bytes: 'resident memory',
  clock_mhz: 'core clock',
};

const shown = Object.keys(words);

export function metricCell(value: number, { unit, metric }: Pick<MonitorMetric, 'unit' | 'metric'>): string {
  if (unit === 'B') return formatBytes(value);
  if (unit === '%') return formatPercent(value / 100);
  if (metric === 'cores_busy') return formatNumber(value, 2);
  return `${formatNumber(value, 2)}${unit === '' ? '' : `${nbsp}${unit}`}`;
}

export function metricWords({ scope, metric }: { scope?: string; metric: string }): string {
  return `${scope === undefined ? '' : `${scopeWords[scope] ?? scope} `}${words[metric] ?? metric}`;
}

const scopeWords: Record<string, string> = {
  host: 'host:',
  process: 'watched:',
  other_processes: 'others:',
  inferscope: 'inferscope:',
};

/** Metrics in reading order; what has no words here is in the document only. */
export function orderedMetrics<M extends { metric: string }>(metrics: readonly M[]): M[] {
  return shown.flatMap((name) => metrics.filter(({ metric }) => metric === name));
}

const share = (figure: Figure) => (figure.value === null ? noValue : formatPercent(figure.value));

/** What a device did, a line each: idle, throttled, energy, memory, processes. Names in it are as the system gives them. */
export function deviceFacts(
  device: MonitorDevice,
  { idle_percent: percent, idle_ms: ms }: MonitorResult['thresholds'],
): [label: string, text: string][] {
  const { power, memory, throttling, clock, processes } = device;
  const lines: [string, string][] = [];
  const idleText =
    device.idle.share.value === null
      ? device.idle.share.reason.text
      : device.idle.count === 0
        ? `never under ${percent}${nbsp}% for ${formatQuantity(ms, 'ms')} or more`
        : `${share(device.idle.share)} of the time, ${device.idle.count} period${device.idle.count === 1 ? '' : 's'} (under ${percent}${nbsp}% for at least ${formatQuantity(ms, 'ms')}), longest ${formatQuantity(device.idle.longest_ms ?? 0, 'ms')}`;
  lines.push(['idle', idleText]);
  lines.push(['throttled', throttleText(device)]);
  if (clock.dropped_share.value !== null && clock.dropped_share.value > 0)
    lines.push([
      'clock drops',
      `${share(clock.dropped_share)} of the busy time under 90${nbsp}% of the usual ${formatQuantity(clock.usual_mhz.value ?? 0, 'MHz')}`,
    ]);
  if (power.energy_j.value !== null) {
    const limit =
      power.limit_w.value === null
        ? ''
        : `; limit ${formatQuantity(power.limit_w.value, 'W')}, within 5${nbsp}% of it ${share(power.near_limit_share)} of the time`;
    lines.push(['energy', `${formatQuantity(power.energy_j.value, 'J')} (${power.energy_j.source})${limit}`]);
  }
  if (memory.peak_bytes.value !== null && memory.growth_bytes.value !== null) {
    const total = memory.total_bytes.value === null ? '' : ` of ${formatBytes(memory.total_bytes.value)}`;
    lines.push([
      'memory',
      `peak ${formatBytes(memory.peak_bytes.value)}${total}, last − first ${formatBytes(memory.growth_bytes.value)}`,
    ]);
  }
  for (const { pid, name, here, peak_bytes } of processes.slice(0, 8)) {
    const who = here === true ? (name ?? 'unnamed') : 'not a process of this machine or container';
    lines.push(['process', `${pid} ${who}, at most ${formatBytes(peak_bytes)}`]);
  }
  if (throttling.periods.length > 0) {
    const [longest] = throttling.periods.toSorted((a, b) => b.dur_ns - a.dur_ns);
    const at = formatQuantity(longest!.start_ns / 1e6, 'ms');
    const drop = longest!.clock_drop === null ? '' : `, SM clock ${formatPercent(longest!.clock_drop)} lower`;
    lines.push([
      'longest',
      `${formatQuantity(longest!.dur_ns / 1e6, 'ms')} from ${at} on: ${longest!.reasons.join(', ')}${drop}`,
    ]);
  }
  return lines;
}

function throttleText({ throttling }: MonitorDevice): string {
  if (throttling.share.value === null) return throttling.share.reason.text;
  if (throttling.count === 0) return 'never';
  const reasons = throttling.reasons.map((one) => `${one.words} ${formatPercent(one.share)}`).join(', ');
  return `${share(throttling.share)} of the time in ${throttling.count} period${throttling.count === 1 ? '' : 's'}: ${reasons}`;
}
