import type { Digest } from '../kept-file.js';
import type { KeptWriter } from '../../model/workbench.js';
import { createParquet } from './file.js';
import type { FileColumn } from './file-column.js';
import { emptyGroup, rowGroups } from './row-groups.js';
import type { ParquetThread } from './thread.js';

export interface WrittenTable {
  writer: KeptWriter;
  /** Settles when the file is whole; rejects with what went wrong. */
  written: Promise<{ rows: number; digest: Digest }>;
}

/** Writes a table on this thread. */
export function writeTable(path: string, columns: readonly FileColumn[]): WrittenTable {
  const file = createParquet(path, columns);
  // Most tables are small.
  const buffers = emptyGroup(columns, 1024);
  const groups = rowGroups(
    columns,
    () => buffers,
    (group, rows) => file.writeGroup(group, rows),
  );
  const { promise, resolve } = deferred<{ rows: number; digest: Digest }>();
  return {
    writer: {
      append: groups.append,
      async close() {
        await groups.flush();
        resolve(file.close());
      },
    },
    written: promise,
  };
}

/** Row groups in flight or being filled: what keeps the memory of a fast producer bounded. */
const groupsAhead = 4;

/** Writes a table on a thread of its own: encoding takes longer than gathering the rows. */
export function writeTableOn(
  thread: ParquetThread,
  path: string,
  columns: readonly FileColumn[],
): WrittenTable {
  const file = thread.open(path, columns);
  const inFlight = new Set<Promise<void>>();
  const groups = rowGroups(
    columns,
    () => file.freeGroup() ?? emptyGroup(columns),
    async (group, rows) => {
      const sent: Promise<void> = file.writeGroup(group, rows).finally(() => inFlight.delete(sent));
      // The failure is told by `written`, and to who waits below.
      sent.catch(() => {});
      inFlight.add(sent);
      if (inFlight.size >= groupsAhead) await Promise.race(inFlight);
    },
  );
  return {
    writer: {
      append: groups.append,
      async close() {
        await groups.flush();
        file.close();
      },
    },
    written: file.written,
  };
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
