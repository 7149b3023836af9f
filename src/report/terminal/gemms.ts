import type { Document } from '../../model/document.js';
import type { Gemm, GemmsResult } from '../../model/documents/gemms.js';
import { formatCount, formatFigure, formatQuantity, noValue } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, withPlainSpaces } from './text.js';

const shapesShown = 10;

/** Matrix products by shape: at most 80 columns, readable without colour. */
export function gemmsSummary({ data }: Document<GemmsResult>, { width: columns }: { width: number }): string {
  const width = Math.min(80, columns);
  const shown = data.gemms.slice(0, shapesShown);
  const right = (head: string) => ({ head, align: 'right' as const });
  const table = textTable(
    [
      { head: 'M × N × K', flexible: true },
      { head: 'dtype' },
      { head: 'source' },
      right('calls'),
      right('time'),
      right('achieved'),
      right('of peak'),
      right('waves'),
    ],
    shown.map((gemm) => [
      shapeOf(gemm),
      gemm.dtype ?? noValue,
      gemm.source,
      formatCount(gemm.calls),
      formatFigure(gemm.total_time_ns),
      formatFigure(gemm.achieved_flops),
      formatFigure(gemm.peak_share),
      gemm.tilings[0] ? formatFigure(gemm.tilings[0].waves) : noValue,
    ]),
    { width },
  );
  const faults = shown
    .filter(({ alignment_faults }) => alignment_faults.length > 0)
    .flatMap((gemm) =>
      hanging('    ', `${shapeOf(gemm)}: ${inert(gemm.alignment_faults.join('; '))}`, width),
    );
  const rest = data.gemms.length - shown.length;
  const lines = [
    `  ${colour.bold('Matrix products by shape')}${data.gpu === null ? '' : ` (${inert(data.gpu)})`}`,
    table,
    ...(rest > 0 ? [`  … and ${formatCount(rest)} more`] : []),
    ...(faults.length > 0 ? ['  Not aligned for tensor cores', ...faults] : []),
  ];
  return withPlainSpaces(lines.join('\n'));
}

function shapeOf({ m, n, k, batch, flop }: Gemm): string {
  const times = batch > 1 ? ` × ${formatCount(batch)}` : '';
  return `${m}×${n}×${k}${times} (${formatQuantity(flop, 'FLOP', 2)})`;
}
