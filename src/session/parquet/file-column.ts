import type { ColumnType } from '../../model/columns.js';

export interface ColumnName {
  name: string;
  type: ColumnType;
}

export interface ColumnSpec extends ColumnName {
  /** VARCHAR columns: the values are indexes into this list. */
  texts: readonly string[];
}

/** A column given row by row, or (`constant`) one value for all rows; the constant of a text column is an index into its texts. */
export interface FileColumn extends ColumnSpec {
  constant?: number | null;
  /** Name of the array with the column's values; default: the column's name. */
  from?: string;
  /** Lookup table: the column's value for each integer value of that array from 0 on; NaN is null. Not for flags. */
  values?: Float64Array;
}

export const arrayOf = ({ name, from }: FileColumn): string => from ?? name;

/** Whether the column is encoded by codes: of a dictionary or of its lookup table. */
export const isLookedUp = ({ type, values }: FileColumn): boolean =>
  type === 'VARCHAR' || values !== undefined;

/** Names of the arrays with the columns' values. */
export const arraysOf = (columns: readonly FileColumn[]): string[] => [
  ...new Set(columns.filter(({ constant }) => constant === undefined).map(arrayOf)),
];
