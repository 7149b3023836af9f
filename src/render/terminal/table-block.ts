import type { Row, Table } from '../../views/block.js';
import { tableToDraw } from '../reasons.js';
import { type Detail, shownAt } from './less.js';
import { moreLine } from './notes.js';
import { coloredText } from './colored-text.js';
import { droppedLines, fittedTable } from './table.js';
import { hanging, inert, textWidth } from './text.js';

/** Maximum rows of a table in a summary with little room. */
const summaryRows = 6;

/** The first `max` rows, or one more: "… and 1 more row" takes as much space as the row that it replaces. */
const firstRows = (rows: readonly Row[], max = Infinity): readonly Row[] =>
  rows.length > max + 1 ? rows.slice(0, max) : rows;

export function tableLines(table: Table, width: number, level: Detail): string[] {
  const { brief } = table;
  const levelRows = table.rows.filter(shownAt(level));
  const {
    columns,
    rows: shown,
    notes,
  } = tableToDraw({
    ...table,
    rows: firstRows(
      levelRows,
      level < 1 ? (level < 0 ? summaryRows / 2 : summaryRows) : level < 2 ? brief : undefined,
    ),
  });
  const notesWithout = (dropped: readonly string[]) =>
    level < 1 ? [] : notes(dropped).flatMap((note) => hanging('  ', inert(note), width));
  if (shown.length === 0) return notesWithout([]);
  const isAbove = (index: number): boolean => columns[index]!.above === true;
  const cells = shown.map((row) => row.cells.map(coloredText));
  // Cells above a row are joined, and the last of them is a sentence: "2  CPU-bound host: the device waits".
  const firsts = cells.map((row) => row.filter((_, index) => isAbove(index)));
  const margin = Math.max(0, ...firsts.map((parts) => textWidth(parts.slice(0, -1).join('  '))));
  const indent = margin === 0 ? 2 : margin + 4;
  const { text, dropped } = fittedTable(
    columns
      .map(({ head, numeric, wraps, lines, endCut, drop }) => ({
        head: inert(head),
        align: numeric ? ('right' as const) : ('left' as const),
        ...(wraps ? { flexible: wraps } : {}),
        ...(lines ? { lines } : {}),
        ...(endCut ? { endCut } : {}),
        ...(drop === undefined ? {} : { leaveOut: drop }),
      }))
      .filter((_, index) => !isAbove(index)),
    cells.map((row) => row.filter((_, index) => !isAbove(index))),
    { width, indent },
  );
  const lines = text.split('\n');
  // Only cells above rows leave columns that never wrap, so that each row is one line.
  const heads = lines.length - cells.length;
  const drawn =
    firsts[0]!.length === 0
      ? lines
      : [
          ...lines.slice(0, heads),
          ...firsts.flatMap((parts, index) => [
            ...hanging(
              `  ${parts
                .slice(0, -1)
                .map((part) => `${part}  `)
                .join('')}`,
              parts.at(-1)!,
              width,
            ),
            lines[heads + index]!,
          ]),
        ];
  return [
    ...drawn,
    ...(level > 0 ? droppedLines(dropped, width) : []),
    ...moreLine(levelRows.length - shown.length, 'more row'),
    ...notesWithout(dropped),
  ];
}
