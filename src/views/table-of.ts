import type { Column, Part, Row, Table, Text } from './block.js';

/** A column with a function that gives its cell for an item. */
export interface ColumnOf<T> extends Column {
  cell: (item: T) => Text;
}

export const rowsOf = <T>(columns: readonly ColumnOf<T>[], things: readonly T[]): Row[] =>
  things.map((one) => ({ cells: columns.map(({ cell }) => cell(one)) }));

/** A table with one row per item; a column without any value is left out with its reason. */
export const tableOf = <T>(
  title: Text,
  columns: readonly ColumnOf<T>[],
  things: readonly T[],
  more: Partial<Table> = {},
): Table => ({ type: 'table', title, reasons: true, columns, rows: rowsOf(columns, things), ...more });

/**
 * Splits off columns with the same value in every row, as words to show above the table ("input 128, fits yes").
 * @param keptColumns ids of columns that stay
 */
export function withoutAlike<T>(
  columns: readonly ColumnOf<T>[],
  things: readonly T[],
  keptColumns: readonly string[],
): { columns: ColumnOf<T>[]; alike: Part[] } {
  const [first] = things;
  if (first === undefined || things.length === 1) return { columns: [...columns], alike: [] };
  const same = ({ id, cell }: ColumnOf<T>): boolean => {
    const value = JSON.stringify(cell(first));
    return !keptColumns.includes(id) && things.every((one) => JSON.stringify(cell(one)) === value);
  };
  const isMissing = (text: Text): boolean => typeof text === 'object' && 'missing' in text;
  const alike = columns.filter((column) => same(column) && !isMissing(column.cell(first)));
  return {
    columns: columns.filter((column) => !alike.includes(column)),
    alike: alike.flatMap(({ head, cell }, index): Part[] => {
      const text = cell(first);
      return [`${index === 0 ? '' : ', '}${head} `, ...(Array.isArray(text) ? text : [text as Part])];
    }),
  };
}
