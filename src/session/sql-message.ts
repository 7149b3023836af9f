import type { ErrorCode, ErrorParts } from '../model/errors.js';
import type { TableDefinition } from './made-tables.js';
import type { RemoteSession } from './remote.js';
import type { SessionTables } from './views.js';

/** Messages between `inferscope sql` and its child process. */
export interface SqlRequest {
  sql: string;
  sessions: SessionTables[];
  /** Read instead of `sessions`. */
  remote: RemoteSession | null;
  /** Names of tables that the parent can define after a `needs` message. */
  derivedNames: readonly string[];
  timeoutS: number;
  maxRows: number;
  maxBytes: number;
  memoryLimitBytes: number;
  spillFolder: string;
}

export interface SqlColumn {
  name: string;
  /** DuckDB's name of the type. */
  type: string;
}

/** Integers above 2^53 are decimal text, so that no digit is lost; dates as DuckDB prints them. */
export type SqlValue = string | number | boolean | null | SqlValue[] | { [key: string]: SqlValue };

/** The parent's answer to `needs`. */
export type SqlDefinitions = TableDefinition[];

export type SqlMessage =
  | { type: 'needs'; names: string[] }
  | { type: 'columns'; columns: SqlColumn[] }
  | { type: 'rows'; rows: unknown[][] }
  | { type: 'end'; cut: 'rows' | 'bytes' | null }
  | { type: 'error'; code: ErrorCode; parts: ErrorParts };
