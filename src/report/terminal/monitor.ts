import { basename } from 'node:path';
import type { Document } from '../../model/document.js';
import type { MonitorMetric, MonitorResult } from '../../model/documents/monitor.js';
import { formatNumber, formatQuantity, nbsp, noValue } from '../format.js';
import { deviceFacts, metricCell, metricWords, orderedMetrics } from '../monitor-words.js';
import { shellCommand } from '../../model/shell.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

function metricTable(metrics: readonly (MonitorMetric & { scope?: string })[], width: number): string {
  const align = 'right' as const;
  const columns = [
    { head: '', flexible: true },
    { head: 'mean', align },
    { head: 'min', align, leaveOut: 2 },
    { head: 'median', align },
    { head: 'p95', align, leaveOut: 3 },
    { head: 'max', align },
    { head: 'samples', align, leaveOut: 1 },
  ];
  const rows = metrics.map((metric) => [
    metricWords(metric),
    metricCell(metric.mean, metric),
    metricCell(metric.min, metric),
    metricCell(metric.median, metric),
    metricCell(metric.p95, metric),
    metricCell(metric.max, metric),
    String(metric.n),
  ]);
  return textTable(columns, rows, { width, indent: 4 });
}

/** What `inferscope monitor` prints at its end. */
export function monitorSummary(
  document: Document<MonitorResult>,
  { width: columns }: { width: number },
): string {
  const width = readingWidth(columns);
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
    const program = `${inert(shellCommand(command))}: ${how}, ${formatQuantity((end_ns - start_ns) / 1e6, 'ms')}`;
    lines.push(...hanging('  program  ', program, width));
  }
  for (const device of devices) {
    const name = device.name === null ? device.scope : `${device.scope} · ${inert(device.name)}`;
    lines.push('', `  ${colour.bold(name)}`, metricTable(orderedMetrics(device.metrics), width), '');
    for (const [label, text] of deviceFacts(device, thresholds))
      lines.push(...hanging(`    ${label.padEnd(13)}`, inert(text), width));
  }
  const hostRows = orderedMetrics(host.metrics);
  if (hostRows.length > 0) lines.push('', `  ${colour.bold('host')}`, metricTable(hostRows, width));
  if (headlines.length > 0) lines.push('');
  for (const headline of headlines) lines.push(...hanging('  ', inert(headline), width));
  const told = document.issues.filter(({ severity }) => severity !== 'info');
  if (told.length > 0) lines.push('');
  for (const { severity, text } of told) lines.push(...hanging(`  ${severity}: `, inert(text), width));
  if (session.id !== null) lines.push('', `  Session ${session.id}`);
  return withPlainSpaces(lines.join('\n'));
}
