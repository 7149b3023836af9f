import type { Document } from '../../model/document.js';
import type { Gemm, GemmsResult } from '../../model/documents/gemms.js';
import { formatCount, formatFigure, formatNumber, formatQuantity, noValue } from '../format.js';
import { gemmSourceNames, leftOutText, oncePerShape, shapeWords, worthALine } from '../gemm-rows.js';
import { colour } from './colour.js';
import { textTable, type TextColumn } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

const shapesShown = 10;

interface Column extends TextColumn {
  cell: (gemm: Gemm) => string;
  /** Left out where it says nothing, or the same of every row: the title says it then. */
  shown: boolean;
}

/** Matrix products by shape: at most 80 columns, readable without colour. */
export function gemmsSummary({ data }: Document<GemmsResult>, { width: columns }: { width: number }): string {
  const width = readingWidth(columns);
  const { rows, leftOut } = oncePerShape(data.gemms);
  const shown = rows.slice(0, shapesShown);
  const sources = [...new Set(shown.map(({ source }) => gemmSourceNames[source]))];
  const types = [...new Set(shown.map(({ dtype }) => dtype ?? 'type unknown'))];
  const timed = shown.some(({ total_time_ns: time }) => time.value !== null);
  const about = [
    ...(data.gpu === null ? [] : [inert(data.gpu)]),
    ...(types.length === 1 ? types : []),
    ...(sources.length === 1 ? sources : []),
  ].join(', ');
  const all: Column[] = [
    { head: 'M × N × K', flexible: true, cell: shapeWords, shown: true },
    { head: 'type', cell: ({ dtype }) => dtype ?? noValue, shown: types.length > 1 },
    { head: 'from', cell: ({ source }) => gemmSourceNames[source], shown: sources.length > 1 },
    { head: 'calls', align: 'right', cell: ({ calls }) => formatCount(calls), shown: true },
    { head: 'time', align: 'right', cell: (gemm) => formatFigure(gemm.total_time_ns), shown: timed },
    { head: 'computes', align: 'right', cell: (gemm) => formatFigure(gemm.achieved_flops), shown: timed },
    { head: 'of peak', align: 'right', cell: (gemm) => formatFigure(gemm.peak_share), shown: timed },
    { head: 'moves', align: 'right', cell: movedPerSecond, shown: timed },
    { head: 'tile', cell: ({ tilings }) => tilings[0]?.tile ?? noValue, shown: !timed },
    { head: 'waves', align: 'right', cell: wavesOf, shown: true },
  ];
  const put = all.filter((column) => column.shown);
  const table = textTable(
    put,
    shown.map((gemm) => put.map(({ cell }) => cell(gemm))),
    { width },
  );
  const rest = rows.length - shown.length;
  const note = leftOutText(leftOut);
  const lines = [
    ...hanging('  ', `${colour.bold('Matrix products by shape')}${about === '' ? '' : ` (${about})`}`, width),
    table,
    ...(rest > 0 ? [`  … and ${formatCount(rest)} more`] : []),
    ...(note === null ? [] : hanging('  ', note, width)),
    ...faultLines(shown, width),
  ];
  return withPlainSpaces(lines.join('\n'));
}

/** Several shapes with one fault share a line. */
function faultLines(shown: readonly Gemm[], width: number): string[] {
  const faulty = worthALine(shown).filter((gemm) => gemm.alignment_faults.length > 0);
  if (faulty.length === 0) return [];
  const byFault = new Map<string, string[]>();
  for (const gemm of faulty) {
    const fault = gemm.alignment_faults.join('; ');
    byFault.set(fault, [...(byFault.get(fault) ?? []), shapeWords(gemm)]);
  }
  return [
    '  Not aligned for tensor cores',
    ...[...byFault].flatMap(([fault, shapes]) =>
      hanging('    ', `${shapes.join(', ')}: ${inert(fault)}`, width),
    ),
  ];
}

/** Bytes of A, B and the output, each once, over the time: what a product of few rows is bound by. */
function movedPerSecond({ achieved_flops, arithmetic_intensity }: Gemm): string {
  const [rate, intensity] = [achieved_flops.value, arithmetic_intensity.value];
  return rate === null || !intensity ? noValue : formatQuantity(rate / intensity, 'B/s');
}

function wavesOf({ tilings }: Gemm): string {
  const waves = tilings[0]?.waves.value ?? null;
  return waves === null ? noValue : formatNumber(waves, waves < 0.1 ? 1 : 2);
}
