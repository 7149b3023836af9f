import { cellText } from '../export/csv.js';
import { color } from '../render/terminal/color.js';
import type { SqlResult } from '../session/sql-run.js';
import type { DescribedTable } from '../session/table-schema.js';
import { hanging, inert } from '../render/terminal/text.js';
import { plural } from '../vocabulary/format.js';

/** Truncates with an ellipsis and removes control characters. */
function fit(text: string, width: number): string {
  const plain = inert(text);
  if (plain.length <= width) return plain;
  return width <= 1 ? plain.slice(0, width) : `${plain.slice(0, width - 1)}…`;
}

const numeric = /^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DOUBLE|FLOAT|DECIMAL)/;

/**
 * Columns are as wide as their content. If they do not fit, the widest columns are truncated first; numbers never are.
 */
export function tableText({ columns, rows }: SqlResult, width: number): string {
  const rightAligned = columns.map(({ type }) => numeric.test(type));
  const cells = rows.map((row) => row.map((value) => (value === null ? 'NULL' : fit(cellText(value), 1000))));
  const widths = columns.map(({ name }, column) =>
    cells.reduce((max, row) => Math.max(max, row[column]?.length ?? 0), name.length),
  );
  if (!shrink(widths, rightAligned, width)) return expandedText(columns, cells);
  const line = (row: string[]): string =>
    row
      .map((cell, column) => {
        const nameWidth = widths[column] ?? 0;
        return rightAligned[column] ? cell.padStart(nameWidth) : fit(cell, nameWidth).padEnd(nameWidth);
      })
      .join('  ')
      .trimEnd();
  const header = line(columns.map(({ name }, column) => fit(name, widths[column] ?? 0)));
  return `${[color.bold(header), ...cells.map(line), color.dim(rowCount(rows.length))].join('\n')}\n`;
}

/** Minimum width of a truncated column. */
const minWidth = 8;

/** @returns false when the columns cannot be made to fit */
function shrink(widths: number[], rightAligned: boolean[], width: number): boolean {
  const total = (): number =>
    widths.reduce((sum, columnWidth) => sum + columnWidth, 0) + 2 * (widths.length - 1);
  while (total() > width) {
    let widest = -1;
    for (let column = 0; column < widths.length; column++) {
      const isShrinkable = !rightAligned[column] && (widths[column] ?? 0) > minWidth;
      if (isShrinkable && (widest < 0 || (widths[column] ?? 0) > (widths[widest] ?? 0))) widest = column;
    }
    if (widest < 0) return false;
    widths[widest] = Math.max(
      minWidth,
      Math.min((widths[widest] ?? 0) - 1, (widths[widest] ?? 0) - (total() - width) / 2) | 0,
    );
  }
  return true;
}

/** Too many columns for the width: one line per value, as psql's \x does. */
function expandedText(columns: SqlResult['columns'], cells: string[][]): string {
  const nameWidth = Math.max(...columns.map(({ name }) => name.length));
  const blocks = cells.map((row, i) => {
    const lines = columns.map(({ name }, column) => `  ${name.padEnd(nameWidth)}  ${row[column] ?? ''}`);
    return [color.bold(`row ${i + 1}`), ...lines].join('\n');
  });
  return `${[...blocks, color.dim(rowCount(cells.length))].join('\n')}\n`;
}

function rowCount(rows: number): string {
  return `(${plural(rows, 'row')})`;
}

/** Every table with its columns, the meanings wrapped to the width. */
export function schemaText(tables: DescribedTable[], width: number): string {
  const blocks = tables.map(({ name, doc, derived, columns }) => {
    const nameWidth = Math.max(...columns.map((column) => column.name.length), 'session_id'.length);
    const row = (column: string, type: string, meaning: string): string[] =>
      hanging(`  ${column.padEnd(nameWidth)}  ${type.padEnd(8)} `, meaning, width);
    return [
      color.bold(name),
      ...hanging('  ', doc, width),
      ...(derived ? [] : row('session_id', 'VARCHAR', 'session of the row')),
      ...columns.flatMap((column) => row(column.name, column.type, column.doc)),
    ].join('\n');
  });
  return `${blocks.join('\n\n')}\n`;
}
