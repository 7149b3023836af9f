import Table from 'cli-table3';
import { textWidth, withPlainSpaces } from './text.js';

export interface TextColumn {
  head: string;
  /** Numbers go right. */
  align?: 'left' | 'right';
  /** Cut with "…" when the table would be wider than it may; at most one column. */
  flexible?: boolean;
  /** Left out, the lowest number first, while the table is wider than it may be. */
  leaveOut?: number;
}

const borderless = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/** The table without its column of the lowest `leaveOut`, or undefined where none may go. */
function narrower(columns: TextColumn[], rows: string[][]): [TextColumn[], string[][]] | undefined {
  const order = columns.map(({ leaveOut }) => leaveOut ?? Infinity);
  const least = Math.min(...order);
  if (least === Infinity) return undefined;
  const gone = order.indexOf(least);
  return [columns.toSpliced(gone, 1), rows.map((row) => row.toSpliced(gone, 1))];
}

/**
 * A borderless table, columns two spaces apart, no wider than `width` as long as columns may be left out and the flexible
 * one can give way. Cells may carry colour codes. Without heads there is no head line.
 */
export function textTable(
  columns: TextColumn[],
  rows: string[][],
  { width = 80, indent = 2 }: { width?: number; indent?: number } = {},
): string {
  const headed = columns.some(({ head }) => head !== '');
  const lines = headed ? [columns.map(({ head }) => head), ...rows] : rows;
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => textWidth(line[index] ?? ''))));
  const total = indent + widths.reduce((sum, cells) => sum + cells + 2, -2);
  const fewer = total > width ? narrower(columns, rows) : undefined;
  if (fewer) return textTable(...fewer, { width, indent });
  const flexible = columns.findIndex((column) => column.flexible);
  const own = widths[flexible];
  if (own !== undefined && total > width) widths[flexible] = Math.max(8, own - (total - width));
  const table = new Table({
    colWidths: widths,
    colAligns: columns.map(({ align }) => align ?? 'left'),
    chars: borderless,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
  });
  table.push(...lines);
  const margin = ' '.repeat(indent);
  return withPlainSpaces(table.toString())
    .split('\n')
    .map((line) => `${margin}${line}`.trimEnd())
    .join('\n');
}
