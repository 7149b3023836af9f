/**
 * The one table model for every source (docs/reference/tables.md is generated from it). Times are BIGINT nanoseconds since the
 * session's start, exact as JS doubles for 104 days. Every event row has the event keys; a correlation id is unique only with (capture_id,
 * pid).
 */
import type { ColumnType, JsOf } from './columns.js';
import { eventTables } from './event-tables.js';
import { measurementTables } from './measurement-tables.js';

export const tables = { ...eventTables, ...measurementTables };

export type TableName = keyof typeof tables;
export const tableNames = Object.keys(tables) as TableName[];

/** A row as importers provide it: missing columns are null. */
export type Row<T extends TableName> = {
  [C in keyof (typeof tables)[T]['columns']]?:
    | ((typeof tables)[T]['columns'][C] extends { type: infer K extends ColumnType } ? JsOf<K> : never)
    | null;
};

/** Where importers write rows. Implemented by src/session/; rows are stored in columns and spilled in chunks. */
export interface TableSink {
  append<T extends TableName>(table: T, row: Row<T>): void;
}
