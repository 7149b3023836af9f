import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { HeldPart } from '../../model/workbench.js';
import type { Digest } from '../kept-file.js';
import { constantChunk } from './column.js';
import { createTurns, type EncodeThread, nextGroup, startEncodeThread, type Turns } from './encode-thread.js';
import { createParquet, groupRows } from './file.js';
import type { FileColumn } from './file-column.js';
import type { EncodedGroup } from './group.js';
import { groupsOf, heldGroups } from './held-group.js';
import type { ColumnChunk } from './pages.js';

/** Tables of fewer rows are encoded before a thread has started. */
const threadFromRows = 500_000;
/** In addition to the main thread, which does other things first and then helps. */
const maxThreads = 3;

/** Writes tables that lie in memory: their row groups are encoded by whichever thread is free, and written in order. */
interface HeldTables {
  /** @param rows of the table @throws what keeps the file from being made */
  open(path: string, rows: number): HeldFile;
  /** Encodes, on this thread, whatever no other has taken. */
  help(): Promise<void>;
  close(): Promise<void>;
}

interface HeldFile {
  /** @param columns what the part gives, by the names that the part knows them by */
  add<T>(columns: readonly FileColumn[], part: HeldPart<T>): void;
  /** @param columns of the file, in their order: `constant` where no part has given them */
  close(columns: readonly FileColumn[]): void;
  /** Settles when the file is whole. @throws what went wrong */
  written: Promise<{ rows: number; digest: Digest }>;
}

/** A part on its way. */
interface Encoding {
  rows: number;
  turns: Turns;
  /** Encodes on this thread. */
  encode(group: number): EncodedGroup;
  take(group: number, encoded: EncodedGroup): void;
  fail(error: unknown): void;
}

/** @param threadFrom rows of a table that other threads encode too */
export function heldTables(threadFrom = threadFromRows): HeldTables {
  const parts: Encoding[] = [];
  let threads: EncodeThread[] = [];
  let closed = false;
  const start = (): EncodeThread[] =>
    Array.from({ length: Math.max(1, Math.min(maxThreads, availableParallelism() - 1)) }, () =>
      startEncodeThread({
        encoded: (part, group, encoded) => parts[part]!.take(group, encoded),
        failed(part, error) {
          for (const encoding of part === null ? parts : [parts[part]!]) encoding.fail(error);
        },
      }),
    );

  return {
    open(path, rows) {
      const file = writtenInOrder(path, rows);
      return {
        ...file,
        add(columns, { name, input, columns: make }) {
          const turns = createTurns();
          const number = parts.length;
          let groups: ((group: number) => EncodedGroup) | null = null;
          parts.push({
            rows,
            turns,
            encode: (group) => (groups ??= heldGroups(make(input), columns, rows))(group),
            take: file.part(columns),
            fail: file.fail,
          });
          if (rows < threadFrom) return;
          if (threads.length === 0) threads = start();
          for (const thread of threads) thread.order({ number, name, input, columns, rows, turns });
        },
      };
    },
    async help() {
      for (const { rows, turns, encode, take, fail } of parts) {
        try {
          for (let group = nextGroup(turns, rows); group !== null; group = nextGroup(turns, rows)) {
            take(group, encode(group));
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

/** A file of row groups that come in any order, some columns at a time. */
function writtenInOrder(path: string, rows: number) {
  const groups = groupsOf(rows);
  const arrived = Array.from({ length: groups }, () => ({
    parts: 0,
    chunks: new Map<string, ColumnChunk>(),
  }));
  let parts = 0;
  let next = 0;
  let resolve!: (written: { rows: number; digest: Digest }) => void;
  let fail!: (error: unknown) => void;
  const written = new Promise<{ rows: number; digest: Digest }>((settle, reject) => {
    resolve = settle;
    fail = reject;
  });
  let write: (() => void) | null = null;
  /** Once all columns are known: writes what is whole. */
  const writer = (columns: readonly FileColumn[]) => {
    const file = createParquet(path, columns);
    return () => {
      for (; next < groups && arrived[next]!.parts === parts; next++) {
        const { chunks } = arrived[next]!;
        const count = Math.min(groupRows, rows - next * groupRows);
        const inFile = columns.map(
          (column) => chunks.get(column.name) ?? constantChunk(column, column.constant ?? null, count),
        );
        file.writeGroup({ rows: count, chunks: inFile });
        chunks.clear();
      }
      if (next === groups) resolve(file.close());
    };
  };
  return {
    written,
    fail,
    part(columns: readonly FileColumn[]) {
      parts++;
      return (group: number, { chunks }: EncodedGroup): void => {
        const rowGroup = arrived[group]!;
        columns.forEach(({ name }, index) => rowGroup.chunks.set(name, chunks[index]!));
        rowGroup.parts++;
        attempt(() => write?.());
      };
    },
    close(columns: readonly FileColumn[]): void {
      attempt(() => {
        write = writer(columns);
        write();
      });
    },
  };

  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      fail(error);
    }
  }
}
