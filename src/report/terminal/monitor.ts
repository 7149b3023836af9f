import { basename } from 'node:path';
import type { Document } from '../../model/document.js';
import type { MonitorDevice, MonitorMetric, MonitorResult } from '../../model/documents/monitor.js';
import type { Figure } from '../../model/figure.js';
import { formatBytes, formatNumber, formatPercent, formatQuantity, nbsp, noValue } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, withPlainSpaces, wrap } from './text.js';

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

/** In this order, the rest of the metrics is in the document. */
const shown = Object.keys(words);

function cell(value: number, { unit, metric }: Pick<MonitorMetric, 'unit' | 'metric'>): string {
  if (unit === 'B') return formatBytes(value);
  if (unit === '%') return formatPercent(value / 100);
  if (metric === 'cores_busy') return formatNumber(value, 2);
  return `${formatNumber(value, 2)}${unit === '' ? '' : `${nbsp}${unit}`}`;
}

function metricTable(metrics: readonly (MonitorMetric & { scope?: string })[], width: number): string {
  const right = (head: string) => ({ head, align: 'right' as const });
  const columns = [{ head: '' }, ...['mean', 'min', 'median', 'p95', 'max', 'samples'].map(right)];
  const rows = metrics.map((metric) => [
    `${metric.scope === undefined ? '' : `${scopeWords[metric.scope] ?? metric.scope} `}${words[metric.metric] ?? metric.metric}`,
    cell(metric.mean, metric),
    cell(metric.min, metric),
    cell(metric.median, metric),
    cell(metric.p95, metric),
    cell(metric.max, metric),
    String(metric.n),
  ]);
  return textTable(columns, rows, { width, indent: 4 });
}

const scopeWords: Record<string, string> = {
  host: 'host:',
  process: 'watched:',
  other_processes: 'others:',
  inferscope: 'inferscope:',
};

function ordered<M extends { metric: string }>(metrics: readonly M[]): M[] {
  return shown.flatMap((name) => metrics.filter(({ metric }) => metric === name));
}

const share = (figure: Figure) => (figure.value === null ? noValue : formatPercent(figure.value));

function facts(device: MonitorDevice, idle: { percent: number; ms: number }): [string, string][] {
  const { power, memory, throttling, clock, processes } = device;
  const lines: [string, string][] = [];
  const idleText =
    device.idle.share.value === null
      ? device.idle.share.reason.text
      : device.idle.count === 0
        ? `never under ${idle.percent}${nbsp}% for ${formatQuantity(idle.ms, 'ms')} or more`
        : `${share(device.idle.share)} of the time, ${device.idle.count} period${device.idle.count === 1 ? '' : 's'} (under ${idle.percent}${nbsp}% for at least ${formatQuantity(idle.ms, 'ms')}), longest ${formatQuantity(device.idle.longest_ms ?? 0, 'ms')}`;
  lines.push(['idle', idleText]);
  lines.push(['held down', throttleText(device)]);
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
    const who = here === true ? inert(name ?? 'unnamed') : 'not a process of this machine or container';
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

/** What `inferscope monitor` prints at its end. */
export function monitorSummary(document: Document<MonitorResult>, { width }: { width: number }): string {
  const { plan, duration_s, sample_hz, devices, host, thresholds, session, headlines } = document.data;
  const title = [
    `inferscope${nbsp}${document.tool_version}`,
    'monitor',
    plan.source === 'files'
      ? plan.files.map((file) => inert(basename(file))).join(', ')
      : (plan.tool ?? 'no GPU'),
    duration_s.value === null ? noValue : formatQuantity(duration_s.value, 's'),
    sample_hz.value === null ? '' : `${formatNumber(sample_hz.value)}${nbsp}Hz`,
  ];
  const lines = [...wrap(title.filter(Boolean).join(' · '), width)];
  if (plan.program) {
    const { command, exit_code, signal, start_ns, end_ns } = plan.program;
    const how = signal ?? (exit_code === null ? 'not started' : `exit code ${exit_code}`);
    const program = `${inert(command.join(' '))}: ${how}, ${formatQuantity((end_ns - start_ns) / 1e6, 'ms')}`;
    lines.push(...hanging('  program  ', program, width));
  }
  for (const device of devices) {
    const name = device.name === null ? device.scope : `${device.scope} · ${inert(device.name)}`;
    lines.push('', `  ${colour.bold(name)}`, metricTable(ordered(device.metrics), width), '');
    for (const [label, text] of facts(device, { percent: thresholds.idle_percent, ms: thresholds.idle_ms }))
      lines.push(...hanging(`    ${label.padEnd(13)}`, text, width));
  }
  const hostRows = ordered(host.metrics);
  if (hostRows.length > 0) lines.push('', `  ${colour.bold('host')}`, metricTable(hostRows, width));
  if (headlines.length > 0) lines.push('');
  for (const headline of headlines) lines.push(...hanging('  ', inert(headline), width));
  const told = document.issues.filter(({ severity }) => severity !== 'info');
  if (told.length > 0) lines.push('');
  for (const { severity, text } of told) lines.push(...hanging(`  ${severity}: `, inert(text), width));
  if (session.id !== null) lines.push('', `  Session ${session.id}`);
  return withPlainSpaces(lines.join('\n'));
}
