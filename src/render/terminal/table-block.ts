import type { Row, Table } from '../../views/block.js';
import { tableToDraw } from '../reasons.js';
import { type Detail, shownAt } from './less.js';
import { moreLine } from './notes.js';
import { coloredText } from './colored-text.js';
import { fittedTable } from './table.js';
import { hanging, inert } from './text.js';

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
  const { text, dropped } = fittedTable(
    columns.map(({ head, numeric, wraps, lines, endCut, drop }) => ({
      head: inert(head),
      align: numeric ? ('right' as const) : ('left' as const),
      ...(wraps ? { flexible: wraps } : {}),
      ...(lines ? { lines } : {}),
      ...(endCut ? { endCut } : {}),
      ...(drop === undefined ? {} : { leaveOut: drop }),
    })),
    shown.map(({ cells }) => cells.map(coloredText)),
    { width, named: level > 0 },
  );
  return [
    ...text.split('\n'),
    ...moreLine(levelRows.length - shown.length, 'more row'),
    ...notesWithout(dropped),
  ];
}
