import type { Batch } from './batch.js';

/** A chunk to parse, in shared memory, which the sending thread does not change until the reply. */
export interface Request {
  buffer: Uint8Array;
  from: number;
  end: number;
  last: boolean;
}

export function transferList(batch: Batch): ArrayBuffer[] {
  return Object.values(batch.tables).map((table) => table.values.buffer);
}
