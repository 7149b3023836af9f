import { InferscopeError } from '../model/errors.js';
import type { TableName } from '../model/tables.js';
import type { Digest } from './digest.js';

/** A Parquet file written into an unfinished session. */
export interface StagedFile {
  table: TableName;
  capture_id: string;
  /** Relative to the session folder, with forward slashes. */
  path: string;
  rows: number;
  /** Computed while writing, if possible. */
  digest?: Digest;
}

/** Capture ids become file names. */
const captureIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function checkCaptureId(table: string, captureId: unknown): asserts captureId is string {
  if (typeof captureId !== 'string' || !captureIdPattern.test(captureId)) {
    throw badValue(table, 'capture_id', captureId);
  }
}

export function capturePath(table: TableName, captureId: string): string {
  return `tables/${table}/${captureId}.parquet`;
}

export function badValue(table: string, column: string, value: unknown): InferscopeError {
  return new InferscopeError('E_TRACE_FILE', {
    what: `table ${table}: ${column} cannot hold ${String(value)}`,
    why: 'Times and counts are integers below 2^53, other numbers finite; capture ids are file names.',
    fix: 'The file the row came from is damaged or in another unit; if the file is intact, please report it.',
  });
}
