import Table from 'cli-table3';
import { hanging, textWidth, withPlainSpaces, wrap } from './text.js';

interface TextColumn {
  head: string;
  /** Numbers are right-aligned. */
  align?: 'left' | 'right';
  /** Cut with "…" if the table is too wide; a number is the width to cut to before columns are dropped. At most one column. */
  flexible?: boolean | number;
  /** A flexible column that wraps instead of being cut. */
  lines?: boolean;
  /** Dropped while the table is too wide, lowest number first. */
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

/** The columns without the one with the lowest `leaveOut`, or undefined if none can be dropped. */
function narrower(columns: TextColumn[]): { gone: number; columns: TextColumn[] } | undefined {
  const order = columns.map(({ leaveOut }) => leaveOut ?? Infinity);
  const lowest = Math.min(...order);
  const gone = order.indexOf(lowest);
  return lowest === Infinity ? undefined : { gone, columns: columns.toSpliced(gone, 1) };
}

const longestWord = (text: string): number => Math.max(...text.split(/\s+/).map(textWidth));

/** Whether different cells start alike, so that they would be equal after cutting their ends. */
function alike(cells: readonly string[], room: number): boolean {
  const whole = new Set(cells);
  return (
    new Set([...whole].map((cell) => (cell.length > room ? cell.slice(0, room - 1) : cell))).size < whole.size
  );
}

/** A name cut in the middle, since names of one family differ at their ends. Colored cells are not cut here. */
const cutInside = (cell: string, room: number): string =>
  cell.length <= room || cell.includes('\u001b')
    ? cell
    : `${cell.slice(0, Math.ceil((room - 1) / 2))}…${cell.slice(cell.length - Math.floor((room - 1) / 2))}`;

interface Room {
  width?: number;
  indent?: number;
  /** Whether dropped columns are named below. */
  named?: boolean;
  /** Heads of columns that were dropped earlier. */
  leftOut?: readonly string[];
}

/**
 * A borderless table with columns two spaces apart, at most `width` wide as long as columns can be dropped (they are named below) and the
 * flexible one can be cut. Cells may contain color codes. Without heads there is no head line.
 */
export function textTable(
  columns: TextColumn[],
  rows: string[][],
  { width = 80, indent = 2, named = true, leftOut = [] }: Room = {},
): string {
  const headed = columns.some(({ head }) => head !== '');
  const lines = headed
    ? [columns.map(({ head }) => head), ...rows.map((row) => [...row])]
    : rows.map((row) => [...row]);
  const widthsOf = (rowLines: readonly string[][]) =>
    columns.map((_, index) =>
      Math.max(0, ...rowLines.flatMap((line) => (line[index] ?? '').split('\n').map(textWidth))),
    );
  const widths = widthsOf(lines);
  const total = indent + widths.reduce((sum, cells) => sum + cells + 2, -2);
  const flexible = columns.findIndex((column) => column.flexible);
  const flexibleWidth = widths[flexible];
  const floor = columns[flexible]?.flexible;
  const spare =
    flexibleWidth !== undefined && typeof floor === 'number' ? Math.max(0, flexibleWidth - floor) : 0;
  const fewer = total - spare > width ? narrower(columns) : undefined;
  if (fewer) {
    const cells = rows.map((row) => row.toSpliced(fewer.gone, 1));
    return textTable(fewer.columns, cells, {
      width,
      indent,
      named,
      leftOut: [...leftOut, columns[fewer.gone]!.head],
    });
  }
  if (flexibleWidth === undefined && headed && total > width) {
    // Nothing can be dropped: heads take several lines, each at least as wide as the cells below it.
    const body = widthsOf(rows);
    lines[0] = columns.map(({ head }, index) =>
      wrap(head, Math.max(body[index]!, longestWord(head))).join('\n'),
    );
    widths.splice(0, widths.length, ...widthsOf(lines));
  }
  if (flexibleWidth !== undefined && total > width) {
    const room = Math.max(8, flexibleWidth - (total - width));
    widths[flexible] = room;
    const cut = columns[flexible]!.lines
      ? (cell: string) => wrap(cell, room).join('\n')
      : alike(
            rows.map((row) => row[flexible] ?? ''),
            room,
          )
        ? (cell: string) => cutInside(cell, room)
        : null;
    if (cut) for (const line of lines) line[flexible] = cut(line[flexible] ?? '');
  }
  const table = new Table({
    colWidths: widths,
    colAligns: columns.map(({ align }) => align ?? 'left'),
    chars: borderless,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
  });
  table.push(...lines);
  const margin = ' '.repeat(indent);
  return [
    ...withPlainSpaces(table.toString())
      .split('\n')
      .map((line) => `${margin}${line}`.trimEnd()),
    ...(named && leftOut.length > 0
      ? hanging(margin, `(no room at ${width} columns: ${leftOut.join(', ')})`, width)
      : []),
  ].join('\n');
}
