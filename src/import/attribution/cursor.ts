import type { Batch, Columns } from '../../model/workbench.js';

/** A sorted scan read row by row. Several are merged by their `start_ns` without loading any of them completely. */
export interface Cursor {
  columns: Columns;
  /** Current row of `columns`. */
  row: number;
  rows: number;
  /** start_ns of that row; Infinity after the last. */
  time: number;
  /** Source of the next batch; null after the last. */
  source: AsyncIterator<Batch> | null;
}

/** @param scan sorted by its column start_ns */
export async function openCursor(scan: AsyncIterable<Batch>): Promise<Cursor> {
  const source = scan[Symbol.asyncIterator]();
  const cursor: Cursor = { columns: {}, row: 0, rows: 0, time: Number.NEGATIVE_INFINITY, source };
  await refill(cursor);
  return cursor;
}

/** Moves to the next row of the batch. @returns false at the end of the batch: await `refill` */
export function nextRow(cursor: Cursor): boolean {
  cursor.row++;
  if (cursor.row >= cursor.rows) return false;
  cursor.time = cursor.columns['start_ns']![cursor.row]!;
  return true;
}

export async function refill(cursor: Cursor): Promise<void> {
  if (!cursor.source) return;
  const next = await cursor.source.next();
  cursor.row = 0;
  if (next.done) {
    cursor.source = null;
    cursor.rows = 0;
    cursor.time = Number.POSITIVE_INFINITY;
    return;
  }
  cursor.columns = next.value.columns;
  cursor.rows = next.value.rows;
  cursor.time = cursor.columns['start_ns']![0]!;
}
