import Table from 'cli-table3';
import { cutEnd, cutMiddle } from '../../vocabulary/cut.js';
import { hanging, textWidth, withPlainSpaces, wrap } from './text.js';

interface TextColumn {
  head: string;
  /** Numbers are right-aligned. */
  align?: 'left' | 'right';
  /** Cut with "…" if the table is too wide; a number is the width to cut to before columns are dropped. At most one column. */
  flexible?: boolean | number;
  /** A flexible column that wraps instead of being cut. */
  lines?: boolean;
  /** Cut at the end, even if two cells then look alike. */
  endCut?: boolean;
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

type Cut = (cell: string, room: number) => string;

const isWhole = (cell: string, room: number): boolean => cell.length <= room || cell.includes('\u001b');

const cutTail: Cut = (cell, room) => (isWhole(cell, room) ? cell : cutEnd(cell, room));

const cutInside: Cut = (cell, room) => (isWhole(cell, room) ? cell : cutMiddle(cell, room));

/** A name on several lines, broken after a separator if there is one. */
const folded: Cut = (cell, room) => {
  if (isWhole(cell, room)) return cell;
  const separator = /.*[\s._/:-]/s.exec(cell.slice(0, room))?.[0].length ?? 0;
  const first = separator > room / 2 ? separator : room;
  return `${cell.slice(0, first).trimEnd()}\n${folded(cell.slice(first), room)}`;
};

/**
 * The shortest form in which different cells stay different: names of one family differ at their ends, and some only in the
 * middle. Colored cells are left alone.
 */
const cutOf = (cells: readonly string[], room: number): Cut =>
  [cutTail, cutInside].find(
    (cut) => new Set(cells.map((cell) => cut(cell, room))).size === new Set(cells).size,
  ) ?? folded;

interface Room {
  width?: number;
  indent?: number;
  /** Heads of columns that were dropped earlier. */
  leftOut?: readonly string[];
}

/**
 * A borderless table with columns two spaces apart, at most `width` wide as long as columns can be dropped (they are named below) and the
 * flexible one can be cut. Cells may contain color codes. Without heads there is no head line.
 */
export function textTable(columns: TextColumn[], rows: string[][], room: Room = {}): string {
  const { text, dropped } = fittedTable(columns, rows, room);
  return [text, ...droppedLines(dropped, room.width, room.indent)].join('\n');
}

/** `textTable` without the names of the columns that it dropped, and their heads. */
export function fittedTable(
  columns: TextColumn[],
  rows: string[][],
  { width = 80, indent = 2, leftOut = [] }: Room = {},
): { text: string; dropped: readonly string[] } {
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
    return fittedTable(fewer.columns, cells, {
      width,
      indent,
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
    const { lines: wrapped, endCut } = columns[flexible]!;
    const cut: Cut = wrapped
      ? (cell) =>
          wrap(cell, room)
            .map((line) => folded(line, room))
            .join('\n')
      : endCut
        ? cutEnd
        : cutOf(
            rows.map((row) => row[flexible] ?? ''),
            room,
          );
    for (const line of lines) line[flexible] = cut(line[flexible] ?? '', room);
  }
  const table = new Table({
    colWidths: widths,
    colAligns: columns.map(({ align }) => align ?? 'left'),
    chars: borderless,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
  });
  table.push(...lines);
  const margin = ' '.repeat(indent);
  const text = withPlainSpaces(table.toString())
    .split('\n')
    .map((line) => `${margin}${line}`.trimEnd())
    .join('\n');
  return { text, dropped: leftOut };
}

/** Names the columns that a table dropped. */
export const droppedLines = (dropped: readonly string[], width = 80, indent = 2): string[] =>
  dropped.length === 0
    ? []
    : hanging(' '.repeat(indent), `(no room at ${width} columns: ${dropped.join(', ')})`, width);
