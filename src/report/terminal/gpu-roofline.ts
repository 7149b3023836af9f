import type { Collectives, GpuRoofline, MeasuredGpu } from '../../model/documents/gpu-roofline.js';
import type { Figure } from '../../model/figure.js';
import {
  formatBytes,
  formatFigure,
  formatNumber,
  formatPercent,
  formatQuantity,
  nbsp,
  noValue,
} from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });
const clock = (mhz: number | null) => (mhz === null ? noValue : `${Math.round(mhz)}`);
const watts = (power: number | null) => (power === null ? noValue : `${Math.round(power)}`);
/** Marks what was measured while something held the clocks down; the issues below say what. */
const mark = ({ throttled_by }: { throttled_by: string[] }) => (throttled_by.length > 0 ? '*' : '');

const sizeWords = ({ m, n, k }: { m: number; n: number; k: number }) =>
  m === n && n === k ? `${m}³` : `${m}×${n}×${k}`;

function computeTable({ compute }: MeasuredGpu, width: number): string {
  return textTable(
    [
      { head: 'compute peak' },
      right('FLOP/s'),
      right('of sheet'),
      right('sd'),
      right('ridge'),
      right('MHz'),
      right('W'),
      { head: 'M×N×K', flexible: true },
    ],
    compute.map((peak) => [
      peak.dtype,
      `${formatQuantity(peak.flops_per_s, 'FLOP/s')}${mark(peak)}`,
      formatFigure(peak.of_sheet),
      formatPercent(peak.sd_share),
      peak.ridge_flop_per_byte === null ? noValue : formatNumber(peak.ridge_flop_per_byte),
      clock(peak.sm_clock_mhz),
      watts(peak.power_w),
      sizeWords(peak),
    ]),
    { width },
  );
}

function bandwidthTable({ bandwidth }: MeasuredGpu, width: number): string {
  return textTable(
    [
      { head: 'memory' },
      right('B/s'),
      right('of sheet'),
      right('sd'),
      right('MHz'),
      right('W'),
      { head: 'arrays of', flexible: true },
    ],
    bandwidth.map((one) => [
      one.pattern,
      `${formatQuantity(one.bytes_per_s, 'B/s')}${mark(one)}`,
      formatFigure(one.of_sheet),
      formatPercent(one.sd_share),
      clock(one.sm_clock_mhz),
      watts(one.power_w),
      formatBytes(one.array_bytes),
    ]),
    { width },
  );
}

function namedLines(gpu: MeasuredGpu): [name: string, text: string][] {
  const { l2, launch, launch_device, launch_round_trip, graph_node, host_links } = gpu;
  const ns = (value: { ns: number } | null, what: string) =>
    value ? [`${formatQuantity(value.ns, 'ns')} ${what}`] : [];
  const links = host_links.map(
    (link) =>
      `${link.direction.replaceAll('-', ' ')} ${link.pinned ? 'pinned' : 'pageable'} ${formatQuantity(link.bytes_per_s, 'B/s')}${shareWords(link.of_sheet)}`,
  );
  return [
    [
      'L2',
      l2 ? `read ${formatQuantity(l2.bytes_per_s, 'B/s')} (array of ${formatBytes(l2.array_bytes)})` : '',
    ],
    [
      'launch',
      [
        ...ns(launch, 'of host time'),
        ...ns(launch_device, 'from kernel to kernel'),
        ...ns(launch_round_trip, 'until the host knows its end'),
      ].join(' · '),
    ],
    ['graph node', ns(graph_node, 'from kernel to kernel').join('')],
    ['host link', links.join(' · ')],
    ['data sheet', gpu.sheet ?? 'none known of this name: shares cannot be told'],
  ];
}

const shareWords = (share: Figure) =>
  share.value === null ? '' : ` (${formatPercent(share.value)} of its link)`;

function factsOf(gpu: MeasuredGpu): string {
  return [
    `cuda:${gpu.index}`,
    inert(gpu.name),
    ...(gpu.sm_count === null ? [] : [`${gpu.sm_count}${nbsp}SMs`]),
    ...(gpu.memory_bytes === null ? [] : [formatBytes(gpu.memory_bytes)]),
    ...(gpu.l2_bytes === null ? [] : [`L2${nbsp}${formatBytes(gpu.l2_bytes)}`]),
    ...(gpu.power_limit_w === null ? [] : [`limit${nbsp}${Math.round(gpu.power_limit_w)}${nbsp}W`]),
  ].join(' · ');
}

function gpuLines(gpu: MeasuredGpu, width: number): string[] {
  const lines = ['', ...hanging('', colour.bold(factsOf(gpu)), width)];
  if (gpu.compute.length > 0) lines.push(computeTable(gpu, width));
  if (gpu.bandwidth.length > 0) lines.push('', bandwidthTable(gpu, width));
  lines.push('');
  for (const [name, text] of namedLines(gpu))
    if (text) lines.push(...hanging(`  ${colour.bold(name.padEnd(12))}`, inert(text), width));
  return lines;
}

function collectiveLines(collectives: Collectives, width: number): string[] {
  const { ranks, points, of_sheet } = collectives;
  const table = textTable(
    [{ head: `all-reduce, ${ranks} GPUs` }, right('time'), right('algorithm'), right('bus'), right('sd')],
    points.map((point) => [
      `${formatBytes(point.bytes)}${mark(point)}`,
      formatQuantity(point.median_ns, 'ns'),
      formatQuantity(point.algorithm_bytes_per_s, 'B/s'),
      formatQuantity(point.bus_bytes_per_s, 'B/s'),
      formatPercent(point.sd_share),
    ]),
    { width },
  );
  const share =
    of_sheet.value === null
      ? ''
      : `; the fastest is ${formatPercent(of_sheet.value)} of one direction of the data sheet’s link`;
  return ['', table, ...hanging('  ', `bus = algorithm × 2(n − 1)/n${share}`, width)];
}

/** A GPU like one that was measured as a whole: how its rates compare. */
function comparedLine(gpu: MeasuredGpu, like: MeasuredGpu | undefined, width: number): string[] {
  const compared = [
    ...gpu.compute.map((one) => ({
      what: one.dtype,
      one,
      first: like?.compute.find((x) => x.case === one.case),
    })),
    ...gpu.bandwidth.map((one) => ({
      what: one.pattern,
      one,
      first: like?.bandwidth.find((x) => x.case === one.case),
    })),
  ].map(
    ({ what, one, first }) =>
      `${what} ${first ? formatPercent(first.median_ns / one.median_ns) : noValue}${mark(one)}`,
  );
  const text = `${inert(gpu.name)}, of cuda:${like?.index ?? 0}’s: ${compared.join(' · ')}`;
  return ['', ...hanging(`${colour.bold(`cuda:${gpu.index}`)}  `, text, width)];
}

/** Tables of the GPUs and of what joins them, without title and issues. */
export function gpuRooflineLines({ gpus, collectives }: GpuRoofline, width: number): string[] {
  const like = (gpu: MeasuredGpu) => gpus.find((one) => one.scope === 'full' && one.name === gpu.name);
  return [
    ...gpus.flatMap((gpu) =>
      gpu.scope === 'full' ? gpuLines(gpu, width) : comparedLine(gpu, like(gpu), width),
    ),
    ...(collectives ? collectiveLines(collectives, width) : []),
  ];
}
