/** Types of a table's columns, and columns with their descriptions. */
export type ColumnType = 'BIGINT' | 'INTEGER' | 'DOUBLE' | 'VARCHAR' | 'BOOLEAN';
/** JS type of a column's values. */
export type JsOf<T extends ColumnType> = T extends 'VARCHAR'
  ? string
  : T extends 'BOOLEAN'
    ? boolean
    : number;

export interface Column {
  type: ColumnType;
  doc: string;
}

export interface Table {
  doc: string;
  columns: Record<string, Column>;
}

export const big = (doc: string) => ({ type: 'BIGINT' as const, doc });
export const int = (doc: string) => ({ type: 'INTEGER' as const, doc });
export const num = (doc: string) => ({ type: 'DOUBLE' as const, doc });
export const text = (doc: string) => ({ type: 'VARCHAR' as const, doc });
export const flag = (doc: string) => ({ type: 'BOOLEAN' as const, doc });
