import type { Batch } from './batch.js';

/** A chunk to parse; its memory moves to the worker and back. */
export interface Request {
  buffer: Uint8Array<ArrayBuffer>;
  from: number;
  end: number;
  last: boolean;
}

export interface Reply {
  batch: Batch;
  buffer: Uint8Array<ArrayBuffer>;
}

export function transferList(buffer: Uint8Array<ArrayBuffer>, batch?: Batch): ArrayBuffer[] {
  const values = batch ? Object.values(batch.tables).map((table) => table.values.buffer) : [];
  return [buffer.buffer, ...values];
}
