import { nbsp, noValue } from '../vocabulary/format.js';
import type { Column, Row, Table, Text } from '../views/block.js';
import { parts } from './value.js';

interface TableToDraw {
  columns: readonly Column[];
  rows: readonly Row[];
  /**
   * What is below the table: "– MFU, MBU: no roofline was measured" of dashes that are drawn, "not shown: MFU, because …" of columns without values, and the meanings of columns and marks.
   * @param dropped heads of columns that the medium has no room for
   */
  notes: (dropped?: readonly string[]) => string[];
}

/** A table as drawn: if requested, without columns that have no value; and the notes below it. */
export function tableToDraw({ columns, rows, reasons, marks = [] }: Table): TableToDraw {
  const meaningsOf = (shown: readonly Column[], dropped: readonly string[] = []): string[] => [
    ...shown
      .filter(({ head, meaning }) => meaning !== undefined && !dropped.includes(head))
      .map(({ head, meaning }) => `${head}: ${meaning}`),
    ...marks
      .filter(({ mark }) =>
        rows.some(({ cells }) =>
          cells.some((cell, index) => !dropped.includes(columns[index]!.head) && hasMark(cell, mark)),
        ),
      )
      .map(({ mark, meaning }) => `${mark} ${meaning}`),
  ];
  if (!reasons || rows.length === 0)
    return { columns, rows, notes: (dropped) => meaningsOf(columns, dropped) };
  const heads = new Map<string, Set<string>>();
  const isKeptColumn = columns.map(({ head }, index) => {
    const reasonsOfRows = rows.map(({ cells }) => missingReason(cells[index]));
    for (const reason of reasonsOfRows)
      if (reason !== null) heads.set(reason, (heads.get(reason) ?? new Set()).add(head));
    return reasonsOfRows.some((reason) => reason === null);
  });
  const isKept = (_: unknown, index: number): boolean => isKeptColumn[index]!;
  const keptColumns = columns.filter(isKept);
  // A table of only names is not shown.
  const known = keptColumns.some(({ numeric }) => numeric) || !columns.some(({ numeric }) => numeric);
  return {
    columns: keptColumns,
    rows: known ? rows.map((row) => ({ ...row, cells: row.cells.filter(isKept) })) : [],
    notes: (dropped = []) => [
      ...[...heads].flatMap(([reason, names]) => {
        const named = [...names].filter((name) => !dropped.includes(name));
        // A column without any value is not drawn, so it has no dash to explain.
        const drawn = named.filter((name) => keptColumns.some(({ head }) => head === name));
        const absent = named.filter((name) => !drawn.includes(name));
        // A column that is missing for several reasons is named once, with all of them.
        const reasonsOf = (name: string) => [...heads].flatMap(([why, all]) => (all.has(name) ? [why] : []));
        const starting = absent.filter((name) => reasonsOf(name)[0] === reason);
        const bySet = new Map<string, string[]>();
        for (const name of starting) {
          const all = reasonsOf(name).join(', or ');
          bySet.set(all, [...(bySet.get(all) ?? []), name]);
        }
        return [
          ...(drawn.length > 0 ? [`${noValue}${nbsp}${joinNames(drawn)}: ${reason}`] : []),
          ...[...bySet].map(([all, group]) => `not shown: ${joinNames(group)}, because ${all}`),
        ];
      }),
      ...meaningsOf(keptColumns, dropped),
    ],
  };
}

const hasMark = (cell: Text, mark: string): boolean =>
  parts(cell).some((part) => typeof part === 'string' && part.endsWith(mark));

function joinNames(names: readonly string[]): string {
  const between = names.some((name) => name.includes(',')) ? '; ' : ', ';
  return names.length > 4
    ? `${names.slice(0, 3).join(between)} and ${names.length - 3} more`
    : names.join(between);
}

function missingReason(text: Text = ''): string | null {
  const [only, ...others] = parts(text);
  if (only === undefined || typeof only === 'string' || others.length > 0) return null;
  if ('missing' in only) return only.missing;
  return 'figure' in only && only.figure.value === null ? only.figure.reason.text : null;
}
