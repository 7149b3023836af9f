import type { Document } from '../../model/document.js';
import type { Gemm, GemmsResult } from '../../model/documents/gemms.js';
import { formatCount, formatFigure, formatNumber, noValue } from '../format.js';
import {
  gemmSourceNames,
  leftOutText,
  oncePerShape,
  shapeWords,
  usedShare,
  worthALine,
} from '../gemm-rows.js';
import { collapsed } from '../notices.js';
import { utilizationShare } from '../utilization-share.js';
import { colour } from './colour.js';
import { textTable, type TextColumn } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

interface Column extends TextColumn {
  cell: (gemm: Gemm) => string;
  shown: boolean;
}

const right = (head: string) => ({ head, align: 'right' as const });

/** What `inferscope gemm` prints: at most 80 columns, readable without colour. */
export function gemmView(
  { data, issues, tool_version }: Document<GemmsResult>,
  { width: columns, top }: { width: number; top: number },
): string {
  const width = readingWidth(columns);
  const { rows, leftOut } = oncePerShape(data.gemms);
  const shown = rows.slice(0, top);
  const types = [...new Set(shown.map(({ dtype }) => dtype ?? 'type unknown'))];
  const sources = [...new Set(shown.map(({ source }) => gemmSourceNames[source]))];
  const from = new Set(shown.map(({ roof }) => roof?.from ?? null));
  const timed = shown.some(({ achieved_flops }) => achieved_flops.value !== null);
  const title = [
    `inferscope ${tool_version}`,
    'gemm',
    data.gpu === null ? 'unknown GPU' : inert(data.gpu),
    ...(data.stage === undefined ? [] : [data.stage]),
    ...(types.length === 1 ? types : []),
    ...(sources.length === 1 ? sources : []),
  ].join(' · ');
  const all: Column[] = [
    { head: 'M × N × K', flexible: true, cell: shapeWords, shown: true },
    { head: 'type', cell: ({ dtype }) => dtype ?? noValue, shown: types.length > 1 },
    { head: 'from', cell: ({ source }) => gemmSourceNames[source], shown: sources.length > 1 },
    { ...right('calls'), cell: ({ calls }) => formatCount(calls), shown: true },
    { ...right('time'), cell: (gemm) => formatFigure(gemm.total_time_ns), shown: timed },
    // The share of the roof says the same where there is no room for both.
    { ...right('TFLOP/s'), cell: teraflops, shown: timed && types.length === 1 && sources.length === 1 },
    {
      ...right('of roof'),
      cell: ({ roof }) => (roof ? utilizationShare(roof.share) : noValue),
      shown: timed,
    },
    { head: 'tile', cell: ({ tilings }) => tilings[0]?.tile ?? noValue, shown: true },
    {
      ...right('waves'),
      cell: ({ tilings }) => {
        const waves = tilings[0]?.waves.value ?? null;
        return waves === null ? noValue : formatNumber(waves, waves < 0.1 ? 1 : 2);
      },
      shown: true,
    },
    { ...right('used'), cell: (gemm) => utilizationShare(usedShare(gemm)), shown: true },
  ];
  const put = all.filter((column) => column.shown);
  const note = leftOutText(leftOut);
  const lines = [
    ...wrap(title, width),
    '',
    ...(shown.length === 0
      ? ['  no matrix product with a known shape']
      : [
          textTable(
            put,
            shown.map((gemm) => put.map(({ cell }) => cell(gemm))),
            { width },
          ),
        ]),
    ...(rows.length > shown.length
      ? [`  … and ${formatCount(rows.length - shown.length)} more (--top)`]
      : []),
    '',
    ...(shown.length === 0 ? [] : hanging('  ', explanation(from, timed), width)),
    ...(note === null ? [] : hanging('  ', note, width)),
    ...changes(shown, width),
    ...algorithms(shown, width),
    ...collapsed(issues).flatMap(({ severity, text }) =>
      hanging(`  ${severity === 'info' ? 'note' : colour.yellow(severity)}: `, inert(text), width),
    ),
  ];
  return withPlainSpaces(lines.join('\n'));
}

function explanation(from: ReadonlySet<string | null>, timed: boolean): string {
  const whose = from.has('measured')
    ? 'roofs measured on this GPU'
    : from.has('sheet')
      ? "the data sheet's peak and bandwidth"
      : 'no roof is known';
  const roof = timed
    ? `of roof: max(FLOP / peak, bytes / bandwidth) over the time of a call (${whose}). `
    : '';
  return `${roof}used: M×N over the area of its tiles × waves over whole waves; what is left of 100 % is edge and idle SMs.`;
}

const teraflops = ({ achieved_flops }: Gemm): string =>
  achieved_flops.value === null ? noValue : formatNumber(achieved_flops.value / 1e12);

/** One line a change; several shapes with one and the same text share it. */
function changes(shown: readonly Gemm[], width: number): string[] {
  const byText = new Map<string, string[]>();
  for (const gemm of worthALine(shown)) {
    for (const { text } of gemm.what_if ?? [])
      byText.set(text, [...(byText.get(text) ?? []), shapeWords(gemm)]);
  }
  if (byText.size === 0) return [];
  const models = worthALine(shown)
    .flatMap((gemm) => gemm.what_if ?? [])
    .map(({ time_ratio }) => (time_ratio.value === null ? null : time_ratio.source))
    .filter((model) => model !== null);
  return [
    '',
    `  ${colour.bold('What another size would give')}, by model, not measured`,
    ...[...byText].flatMap(([text, shapes]) =>
      hanging('    ', `${shapes.join(', ')}: ${inert(text)}`, width),
    ),
    ...[...new Set(models)].flatMap((model) => hanging('    ', `Model: ${model}.`, width)),
    '',
  ];
}

/** Layout and algorithm, where a log tells them. */
function algorithms(shown: readonly Gemm[], width: number): string[] {
  const told = shown.filter(({ source, layout }) => source !== 'profiler' && layout !== null);
  if (told.length === 0) return [];
  const table = textTable(
    [
      { head: 'M × N × K' },
      { head: 'layout' },
      { head: 'accumulates' },
      { head: 'algorithm', flexible: true },
    ],
    told.map((gemm) => [
      shapeWords(gemm),
      gemm.layout ?? noValue,
      gemm.compute_type ?? noValue,
      inert(gemm.made_by[0]?.name ?? noValue),
    ]),
    { width },
  );
  return ['', `  ${colour.bold('Layouts and algorithms')}`, table, ''];
}
