import type { Document } from '../../model/document.js';
import type { CountersResult, KernelCounters } from '../../model/documents/counters.js';
import type { Figure } from '../../model/figure.js';
import { formatCount, formatFigure, formatNumber, formatPercent, nbsp, noValue } from '../format.js';
import { kernelLabel } from '../kernel-label.js';
import { colour } from './colour.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

/** In all, and at least of each stage. */
const kernelsShown = 9;
const kernelsOfStage = 3;
/** What a served model does; loading and warming up are shown where there is nothing else. */
const told = new Set<string | null>(['decode', 'prefill', 'mixed', 'sampling', 'decode and prefill']);
const stallsShown = 3;

/** What ncu's counters say of each kernel (row A3): at most 80 columns, readable without colour. */
export function countersSummary(
  { data }: Document<CountersResult>,
  { width: columns }: { width: number },
): string {
  const width = readingWidth(columns);
  const { kernels, launches_total } = data;
  const stages = byStage(kernels);
  const lines = [
    `  ${colour.bold('Kernels under ncu, by time')} (${formatCount(launches_total)} launches profiled)`,
  ];
  const shown =
    stages.filter(([stage]) => told.has(stage)).length > 0
      ? stages.filter(([stage]) => told.has(stage))
      : stages;
  const each = Math.max(kernelsOfStage, Math.floor(kernelsShown / Math.max(1, shown.length)));
  for (const [stage, own] of shown) {
    if (stage !== null) lines.push('', `  ${colour.bold(`In ${stage}`)}`);
    for (const kernel of own.slice(0, each)) lines.push('', ...kernelLines(kernel, width));
    const rest = own.length - each;
    if (rest > 0) lines.push('', `  … and ${formatCount(rest)} more${stage === null ? '' : ` in ${stage}`}`);
  }
  const left = stages.filter((one) => !shown.includes(one));
  for (const [stage, own] of left)
    lines.push('', `  … and ${formatCount(own.length)} in ${stage ?? 'no phase'}`);
  return withPlainSpaces(lines.join('\n'));
}

/** Kernels by the innermost phase they were profiled in, decode first; one group without names where no range tells. */
function byStage(kernels: readonly KernelCounters[]): [string | null, KernelCounters[]][] {
  const groups = new Map<string | null, KernelCounters[]>();
  for (const kernel of kernels) {
    const { stage } = kernel;
    groups.set(stage, [...(groups.get(stage) ?? []), kernel]);
  }
  const order = ['decode', 'prefill', 'mixed', 'sampling'];
  const rank = (stage: string | null) => {
    const at = order.indexOf(stage ?? '');
    return at === -1 ? order.length + (stage === null ? 1 : 0) : at;
  };
  const sorted = [...groups].toSorted(([a], [b]) => rank(a) - rank(b));
  return sorted.length === 1 && sorted[0]![0] === null
    ? sorted
    : sorted.map(([stage, own]) => [stage ?? 'no phase', own]);
}

function kernelLines(kernel: KernelCounters, width: number): string[] {
  const { occupancy, roofline, bound } = kernel;
  const grid = kernel.grid === null ? '' : ` · grid ${kernel.grid}`;
  const head = `${inert(kernelLabel(kernel.name))}${grid} · ${formatCount(kernel.launches)} × ${figure(kernel.duration_ns)}`;
  const limiter = occupancy.limited_by.length > 0 ? `, limited by ${occupancy.limited_by.join(' and ')}` : '';
  const stalls = kernel.stalls
    .slice(0, stallsShown)
    .map(({ reason, share }) => `${reason}${nbsp}${formatPercent(share)}`)
    .join(' · ');
  const side = roofline.roof_side === null ? '' : ` (${roofline.roof_side} side)`;
  const reached =
    roofline.achieved_flops.value === null || roofline.roof_flops.value === null
      ? null
      : `${figure(roofline.achieved_flops)}, ${figure(roofline.roof_share)} of the ${figure(roofline.roof_flops)} that ${intensity(roofline.arithmetic_intensity)} FLOP a byte of DRAM traffic allow${side}`;
  const rows: [name: string, text: string | null][] = [
    ['bound', `${bound.by ?? 'not known'}: ${bound.text}`],
    [
      'of the peak',
      parts([
        ['SM', kernel.sm_throughput],
        ['memory', kernel.memory_throughput],
        ['DRAM', kernel.dram_throughput],
        ['tensor pipe', kernel.tensor_pipe],
      ]),
    ],
    ['occupancy', `${figure(occupancy.achieved)} of ${figure(occupancy.theoretical)} possible${limiter}`],
    [
      'hit rates',
      parts([
        ['L1', kernel.l1_hit_rate],
        ['L2', kernel.l2_hit_rate],
      ]),
    ],
    ['launch', launchText(kernel)],
    ['stalls', stalls === '' ? kernel.stalls_missing : stalls],
    ['roofline', reached],
  ];
  return [
    ...hanging('  ', head, width).map((line) => colour.bold(line)),
    ...rows.flatMap(([name, text]) =>
      text === null ? [] : hanging(`    ${name.padEnd(12)}`, inert(text), width),
    ),
  ];
}

/** "168 registers a thread · 225 KiB shared memory a block · 0.97 waves of blocks". */
function launchText({ registers_per_thread, shared_memory_per_block, waves }: KernelCounters): string | null {
  const known = [
    registers_per_thread.value === null
      ? null
      : `${formatCount(registers_per_thread.value)} registers a thread`,
    shared_memory_per_block.value === null
      ? null
      : `${formatFigure(shared_memory_per_block)} shared memory a block`,
    waves.value === null ? null : `${formatWaves(waves.value)} waves of blocks`,
  ].filter((text) => text !== null);
  return known.length === 0 ? null : known.map((text) => text.replaceAll(' ', nbsp)).join(' · ');
}

/** ncu rounds to hundredths: 0 is "less than that", not "none". */
const formatWaves = (waves: number): string =>
  waves < 0.005 ? '<0.01' : formatNumber(waves, waves < 0.1 ? 1 : 2);

const intensity = (of: Figure): string => (of.value === null ? noValue : formatNumber(of.value));

/** "12 %", or the reason why there is none. */
function figure(of: Figure): string {
  return of.value === null ? `not collected (${of.reason.text})` : formatFigure(of);
}

function parts(list: [name: string, of: Figure][]): string | null {
  const known = list.filter(([, of]) => of.value !== null);
  return known.length === 0
    ? null
    : known.map(([name, of]) => `${name}${nbsp}${formatFigure(of)}`).join(' · ');
}
