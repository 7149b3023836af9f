import type { Column, Row, Table, Text } from './block.js';

/** A column with what it shows of a thing. */
export interface ColumnOf<T> extends Column {
  of: (one: T) => Text;
}

export const rowsOf = <T>(columns: readonly ColumnOf<T>[], things: readonly T[]): Row[] =>
  things.map((one) => ({ cells: columns.map(({ of }) => of(one)) }));

/** A row per thing; columns that no thing has are left out with their reasons. */
export const tableOf = <T>(
  title: Text,
  columns: readonly ColumnOf<T>[],
  things: readonly T[],
  more: Partial<Table> = {},
): Table => ({ t: 'table', title, reasons: true, columns, rows: rowsOf(columns, things), ...more });
