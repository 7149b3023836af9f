import type { ColumnType } from '../../model/columns.js';

export interface ColumnName {
  name: string;
  type: ColumnType;
}

export interface ColumnSpec extends ColumnName {
  /** VARCHAR columns: the values are indexes into this list. */
  texts: readonly string[];
}

/** A column given row by row, or (`constant`) one value in all rows; a text's constant is an index into its texts. */
export interface FileColumn extends ColumnSpec {
  constant?: number | null;
  /** The array it is made of; without it the one of its own name. */
  from?: string;
  /** What it has at each value of that array, whole numbers from 0 on; NaN is null. Not of flags. */
  values?: Float64Array;
}

export const arrayOf = ({ name, from }: FileColumn): string => from ?? name;

/** Its values follow from codes, of a dictionary or of its own values. */
export const isLookedUp = ({ type, values }: FileColumn): boolean =>
  type === 'VARCHAR' || values !== undefined;

/** Names of the arrays that columns are made of. */
export const arraysOf = (columns: readonly FileColumn[]): string[] => [
  ...new Set(columns.filter(({ constant }) => constant === undefined).map(arrayOf)),
];
