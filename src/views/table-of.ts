import type { Column, Part, Row, Table, Text } from './block.js';

/** A column with a function that gives its cell for an item. */
export interface ColumnOf<T> extends Column {
  cell: (item: T) => Text;
}

export const rowsOf = <T>(columns: readonly ColumnOf<T>[], items: readonly T[]): Row[] =>
  items.map((item) => ({ cells: columns.map(({ cell }) => cell(item)) }));

/** A table with one row per item; a column without any value is left out with its reason. */
export const tableOf = <T>(
  title: Text,
  columns: readonly ColumnOf<T>[],
  items: readonly T[],
  options: Partial<Table> = {},
): Table => ({ type: 'table', title, reasons: true, columns, rows: rowsOf(columns, items), ...options });

/**
 * Splits off columns with the same value in every row, as words to show above the table ("input 128, fits yes").
 * @param keptIds ids of columns that stay
 * @param single whether a single row has constant columns too
 */
export function withoutConstantColumns<T>(
  columns: readonly ColumnOf<T>[],
  items: readonly T[],
  keptIds: readonly string[],
  { single = false }: { single?: boolean } = {},
): { columns: ColumnOf<T>[]; constants: Part[] } {
  const [first] = items;
  if (first === undefined || (items.length === 1 && !single)) return { columns: [...columns], constants: [] };
  const isConstant = ({ id, cell }: ColumnOf<T>): boolean => {
    const value = JSON.stringify(cell(first));
    return !keptIds.includes(id) && items.every((item) => JSON.stringify(cell(item)) === value);
  };
  const isMissing = (text: Text): boolean => typeof text === 'object' && 'missing' in text;
  const constants = columns.filter((column) => isConstant(column) && !isMissing(column.cell(first)));
  return {
    columns: columns.filter((column) => !constants.includes(column)),
    constants: constants.flatMap(({ head, cell }, index): Part[] => {
      const text = cell(first);
      return [`${index === 0 ? '' : ', '}${head} `, ...(Array.isArray(text) ? text : [text as Part])];
    }),
  };
}
