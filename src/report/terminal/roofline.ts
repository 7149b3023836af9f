import { colour } from './colour.js';
import type { Document } from '../../model/document.js';
import type { BandwidthPoint, MachineRoofline, RooflineData } from '../../model/documents/roofline.js';
import { formatBytes, formatCount, formatNumber, formatPercent, formatQuantity, nbsp } from '../format.js';
import { gpuRooflineLines } from './gpu-roofline.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, textBar, withPlainSpaces, wrap } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

function ageWords(cached: boolean, seconds: number): string {
  if (!cached) return 'measured now';
  if (seconds < 60) return 'measured just now';
  const [count, unit] =
    seconds < 3600
      ? [seconds / 60, 'minute']
      : seconds < 172_800
        ? [seconds / 3600, 'hour']
        : [seconds / 86_400, 'day'];
  const whole = Math.floor(count);
  return `measured ${formatCount(whole)}${nbsp}${unit}${whole === 1 ? '' : 's'} ago`;
}

function computeTable(roofline: MachineRoofline, width: number): string {
  return textTable(
    [{ head: 'compute peak' }, right('FLOP/s'), right('sd'), { head: 'reached by', flexible: true }],
    roofline.compute.map((peak) => [
      peak.dtype,
      formatQuantity(peak.flops_per_s, 'FLOP/s'),
      formatPercent(peak.sd_share),
      inert(peak.reached_by),
    ]),
    { width },
  );
}

function bandwidthTable(points: BandwidthPoint[], width: number): string {
  const full = Math.max(...points.map((point) => point.bytes_per_s));
  return textTable(
    [
      right('working set'),
      { head: 'level' },
      right('read'),
      right('sd'),
      { head: '' },
      { head: 'reached by', flexible: true },
    ],
    points.map((point) => [
      formatBytes(point.working_set_bytes),
      point.level,
      formatQuantity(point.bytes_per_s, 'B/s'),
      formatPercent(point.sd_share),
      textBar(point.bytes_per_s, full, 16),
      inert(point.reached_by),
    ]),
    { width },
  );
}

/** What `inferscope roofline` prints: roofs of GPUs, of the CPU, or both; at most 80 columns, readable without colour. */
export function rooflineSummary(
  document: Document<RooflineData>,
  { width: columns }: { width: number },
): string {
  const { roofline, cached, age_s, gpu, gpu_cached, gpu_age_s } = document.data;
  const width = readingWidth(columns);
  const title = (parts: string[]) =>
    wrap([`inferscope${nbsp}${document.tool_version}`, 'roofline', ...parts].join(' · '), width);
  const lines: string[] = [];
  if (gpu) {
    const driver = gpu.driver === null ? [] : [`driver${nbsp}${inert(gpu.driver)}`];
    lines.push(...title([inert(gpu.framework), ...driver, ageWords(gpu_cached === true, gpu_age_s ?? 0)]));
    lines.push(...gpuRooflineLines(gpu, width));
  }
  if (roofline) {
    const threads = `${formatCount(roofline.threads)}${nbsp}thread${roofline.threads === 1 ? '' : 's'}`;
    const parts = [inert(roofline.cpu_model), inert(roofline.engine), threads, ageWords(cached, age_s)];
    lines.push(...(gpu ? ['', parts.join(' · ')] : title(parts)), ...cpuLines(roofline, width));
  }
  if (document.issues.length > 0) lines.push('');
  for (const { severity, text } of document.issues) {
    lines.push(...hanging(`  ${severity}: `, inert(text), width));
  }
  return withPlainSpaces(lines.join('\n'));
}

function cpuLines(roofline: MachineRoofline, width: number): string[] {
  const lines = ['', computeTable(roofline, width), ''];
  lines.push(bandwidthTable(roofline.bandwidth, width));
  const streams = roofline.weight_streams.map(
    (stream) =>
      `${inert(stream.format)} at batch ${stream.batch_size} ${formatQuantity(stream.bytes_per_s, 'B/s')}, ${formatNumber(stream.weights_per_s / 1e9)}${nbsp}G${nbsp}weights/s`,
  );
  const named: [string, string][] = [
    [
      'ridge point',
      `${formatNumber(roofline.ridge_flop_per_byte)} FLOP/byte (float32 peak over ${roofline.bandwidth.at(-1)?.level ?? 'memory'} read)`,
    ],
    ['weight streams', streams.join(' · ')],
    [
      'last-level cache',
      roofline.last_level_cache_bytes === null
        ? 'size unknown'
        : formatBytes(roofline.last_level_cache_bytes),
    ],
  ];
  lines.push('');
  for (const [name, text] of named) {
    if (text) lines.push(...hanging(`  ${colour.bold(name.padEnd(17))}`, text, width));
  }
  return lines;
}
