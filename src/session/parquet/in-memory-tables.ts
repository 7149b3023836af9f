import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { InMemoryPart } from '../../model/workbench.js';
import type { Digest } from '../digest.js';
import { constantChunk } from './column.js';
import { createTurns, type EncodeThread, nextGroup, startEncodeThread, type Turns } from './encode-thread.js';
import { createParquet, groupRows } from './file.js';
import type { FileColumn } from './file-column.js';
import type { EncodedGroup } from './group.js';
import { groupsOf, inMemoryGroups } from './in-memory-group.js';
import type { ColumnChunk } from './pages.js';

/** Smaller tables are encoded before a thread has started. */
const threadFromRows = 500_000;
/** In addition to the main thread, which has other work first and then helps. */
const maxThreads = 3;

/** Writes in-memory tables: free threads encode row groups, which are written in order. */
interface InMemoryTables {
  /** @param rows of the table @throws errors that prevent creating the file */
  open(path: string, rows: number): InMemoryTableFile;
  /** Encodes on this thread all row groups that no other thread has taken. */
  help(): Promise<void>;
  close(): Promise<void>;
}

interface InMemoryTableFile {
  /** @param columns given by the part, under the part's names */
  add<T>(columns: readonly FileColumn[], part: InMemoryPart<T>): void;
  /** @param columns of the file in order: `constant` if no part gave them */
  close(columns: readonly FileColumn[]): void;
  /** Resolves when the file is complete. @throws the first error */
  written: Promise<{ rows: number; digest: Digest }>;
}

/** A part that is being encoded. */
interface Encoding {
  rows: number;
  turns: Turns;
  /** Encodes a group on this thread. */
  encode(group: number): EncodedGroup;
  take(group: number, encoded: EncodedGroup): void;
  fail(error: unknown): void;
}

/** @param threadFrom minimum rows of a table for using other threads */
export function inMemoryTables(threadFrom = threadFromRows): InMemoryTables {
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
      const file = orderedFile(path, rows);
      return {
        ...file,
        add(columns, { name, input, columns: make }) {
          const turns = createTurns();
          const number = parts.length;
          let groups: ((group: number) => EncodedGroup) | null = null;
          parts.push({
            rows,
            turns,
            encode: (group) => (groups ??= inMemoryGroups(make(input), columns, rows))(group),
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
            // Yields so that Ctrl-C is handled and finished groups of other threads are written.
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

/** A file of row groups that arrive in any order, some columns at a time. */
function orderedFile(path: string, rows: number) {
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
  /** Called when all columns are known: writes the complete groups. */
  const groupWriter = (columns: readonly FileColumn[]) => {
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
        write = groupWriter(columns);
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
