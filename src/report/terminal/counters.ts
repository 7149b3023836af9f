import type { Document } from '../../model/document.js';
import type { CountersResult, KernelCounters } from '../../model/documents/counters.js';
import type { Figure } from '../../model/figure.js';
import { formatCount, formatFigure, formatPercent, nbsp } from '../format.js';
import { colour } from './colour.js';
import { hanging, inert, withPlainSpaces } from './text.js';

const kernelsShown = 8;
const stallsShown = 3;

/** What ncu's counters say of each kernel (row A3): at most 80 columns, readable without colour. */
export function countersSummary(
  { data }: Document<CountersResult>,
  { width: columns }: { width: number },
): string {
  const width = Math.min(80, columns);
  const { kernels, launches_total } = data;
  const rest = kernels.length - kernelsShown;
  const lines = [
    `  ${colour.bold('Kernels under ncu, by time')} (${formatCount(launches_total)} launches profiled)`,
  ];
  for (const kernel of kernels.slice(0, kernelsShown)) lines.push('', ...kernelLines(kernel, width));
  if (rest > 0) lines.push('', `  … and ${formatCount(rest)} more: inferscope report --json`);
  return withPlainSpaces(lines.join('\n'));
}

function kernelLines(kernel: KernelCounters, width: number): string[] {
  const { occupancy, roofline, bound } = kernel;
  const grid = kernel.grid === null ? '' : ` · grid ${kernel.grid}`;
  const head = `${inert(kernel.name)}${grid} · ${formatCount(kernel.launches)} × ${figure(kernel.duration_ns)}`;
  const limiter = occupancy.limited_by.length > 0 ? `, limited by ${occupancy.limited_by.join(' and ')}` : '';
  const stalls = kernel.stalls
    .slice(0, stallsShown)
    .map(({ reason, share }) => `${reason}${nbsp}${formatPercent(share)}`)
    .join(' · ');
  const reached =
    roofline.achieved_flops.value === null
      ? null
      : `${figure(roofline.achieved_flops)} of ${figure(roofline.roof_flops)} at ${figure(roofline.arithmetic_intensity)}`;
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
    [
      'a block',
      parts([
        ['registers a thread', kernel.registers_per_thread],
        ['shared memory', kernel.shared_memory_per_block],
        ['waves', kernel.waves],
      ]),
    ],
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
