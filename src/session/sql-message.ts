import type { ErrorCode, ErrorParts } from '../model/errors.js';
import type { MadeTable } from './made-tables.js';
import type { RemoteSession } from './remote.js';
import type { SessionTables } from './views.js';

/** What `inferscope sql` and its child process say to each other. */
export interface SqlRequest {
  sql: string;
  sessions: SessionTables[];
  /** Read instead of `sessions`. */
  remote: RemoteSession | null;
  /** Names that the parent can define, when a `needs` message asks for them. */
  made: readonly string[];
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

/** Integers beyond 2^53 come as decimal text, so that no digit is lost; dates as DuckDB prints them. */
export type SqlValue = string | number | boolean | null | SqlValue[] | { [key: string]: SqlValue };

/** The parent's answer to `needs`. */
export type SqlDefinitions = MadeTable[];

export type SqlMessage =
  | { type: 'needs'; names: string[] }
  | { type: 'columns'; columns: SqlColumn[] }
  | { type: 'rows'; rows: unknown[][] }
  | { type: 'end'; cut: 'rows' | 'bytes' | null }
  | { type: 'error'; code: ErrorCode; parts: ErrorParts };
