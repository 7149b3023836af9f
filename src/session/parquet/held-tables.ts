import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { HeldTable } from '../../model/workbench.js';
import type { Digest } from '../kept-file.js';
import { createTurns, type EncodeThread, nextGroup, startEncodeThread, type Turns } from './encode-thread.js';
import { createParquet, type ParquetFile } from './file.js';
import type { FileColumn } from './file-column.js';
import type { EncodedGroup } from './group.js';
import { groupsOf, heldGroups } from './held-group.js';

/** Tables of fewer rows are encoded before a thread has started. */
const threadFromRows = 500_000;
/** Beside the main thread, which does other things first and then helps. */
const mostThreads = 3;

/** Writes tables that lie in memory: their row groups are encoded by whichever thread is free, and written in order. */
export interface HeldTables {
  /** @returns settles when the file is whole; rejects with what went wrong */
  write<T>(
    path: string,
    columns: readonly FileColumn[],
    held: HeldTable<T>,
  ): Promise<{ rows: number; digest: Digest }>;
  /** Encodes, on this thread, whatever no other has taken. */
  help(): Promise<void>;
  close(): Promise<void>;
}

interface Writing {
  rows: number;
  turns: Turns;
  /** Made when this thread first takes a part. */
  encoder: () => (group: number) => EncodedGroup;
  take(group: number, encoded: EncodedGroup): void;
  fail(error: unknown): void;
}

/** @param threadFrom rows of a table that other threads encode too */
export function heldTables(threadFrom = threadFromRows): HeldTables {
  const tables: Writing[] = [];
  let threads: EncodeThread[] = [];
  let closed = false;
  const replies = {
    encoded: (table: number, group: number, encoded: EncodedGroup) => tables[table]!.take(group, encoded),
    failed(table: number | null, error: Error) {
      for (const one of table === null ? tables : [tables[table]!]) one.fail(error);
    },
  };
  const start = (): EncodeThread[] => {
    const count = Math.max(1, Math.min(mostThreads, availableParallelism() - 1));
    return Array.from({ length: count }, () => startEncodeThread(replies));
  };

  return {
    write(path, columns, held) {
      const { rows, table, input } = held;
      const turns = createTurns();
      const number = tables.length;
      return new Promise((resolve, reject) => {
        const file = createParquet(path, columns);
        let encode: ((group: number) => EncodedGroup) | null = null;
        tables.push({
          rows,
          turns,
          encoder: () => (encode ??= heldGroups(held.columns(input), columns, rows)),
          ...inOrder(file, groupsOf(rows), resolve, reject),
        });
        if (rows < threadFrom) return;
        if (threads.length === 0) threads = start();
        for (const thread of threads) thread.order({ number, table, input, columns, rows, turns });
      });
    },
    async help() {
      for (const { rows, turns, encoder, take, fail } of tables) {
        try {
          for (let group = nextGroup(turns, rows); group !== null; group = nextGroup(turns, rows)) {
            take(group, encoder()(group));
            // So that Ctrl-C is heard, and what the others have done is written.
            await setImmediate();
            if (closed) return;
          }
        } catch (error) {
          fail(error);
        }
      }
    },
    async close() {
      closed = true;
      await Promise.all(threads.map((thread) => thread.close()));
    },
  };
}

/** Row groups as they come, written in their order. */
function inOrder(
  file: ParquetFile,
  groups: number,
  resolve: (written: { rows: number; digest: Digest }) => void,
  reject: (error: unknown) => void,
): Pick<Writing, 'take' | 'fail'> {
  const waiting = new Map<number, EncodedGroup>();
  let written = 0;
  const writeReady = (): void => {
    for (let next = waiting.get(written); next; next = waiting.get(written)) {
      file.writeGroup(next);
      waiting.delete(written++);
    }
    if (written === groups) resolve(file.close());
  };
  if (groups === 0) writeReady();
  return {
    take(group, encoded) {
      try {
        waiting.set(group, encoded);
        writeReady();
      } catch (error) {
        reject(error);
      }
    },
    fail: reject,
  };
}
