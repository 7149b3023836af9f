import type { Row, Table } from '../../views/block.js';
import { explained } from '../reasons.js';
import { type Detail, shownAt } from './less.js';
import { moreLine } from './notes.js';
import { painted } from './painted.js';
import { textTable } from './table.js';
import { hanging, inert } from './text.js';

/** Maximum rows of a table in a summary with little room. */
const tightRows = 6;

/** "… and 1 more" is as long as the row that it would replace. */
const firstRows = (rows: readonly Row[], most = Infinity): readonly Row[] =>
  rows.length > most + 1 ? rows.slice(0, most) : rows;

export function tableLines(table: Table, width: number, level: Detail): string[] {
  const { brief } = table;
  const due = table.rows.filter(shownAt(level));
  const {
    columns,
    rows: shown,
    reasons,
  } = explained({
    ...table,
    rows: firstRows(due, level < 1 ? (level < 0 ? tightRows / 2 : tightRows) : level < 2 ? brief : undefined),
  });
  const why = level < 1 ? [] : reasons.flatMap((reason) => hanging('  ', inert(reason), width));
  if (shown.length === 0) return why;
  const text = textTable(
    columns.map(({ head, numeric, wraps, lines, drop }) => ({
      head: inert(head),
      align: numeric ? ('right' as const) : ('left' as const),
      ...(wraps ? { flexible: wraps } : {}),
      ...(lines ? { lines } : {}),
      ...(drop === undefined ? {} : { leaveOut: drop }),
    })),
    shown.map(({ cells }) => cells.map(painted)),
    { width, named: level > 0 },
  );
  return [...text.split('\n'), ...moreLine(due.length - shown.length), ...why];
}
