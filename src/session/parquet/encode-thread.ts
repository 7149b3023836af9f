import { parentPort, Worker } from 'node:worker_threads';
import { childEntry } from '../../model/installation.js';
import type { InMemoryColumns } from '../../model/workbench.js';
import type { FileColumn } from './file-column.js';
import type { EncodedGroup } from './group.js';
import { groupsOf, inMemoryGroups } from './in-memory-group.js';

/** A part of an in-memory table, as sent to a thread. */
interface EncodeOrder {
  /** Number of the part in replies. */
  number: number;
  /** As in InMemoryPart. */
  name: string;
  input: unknown;
  columns: readonly FileColumn[];
  rows: number;
  turns: Turns;
}

/** Counter of the next free row group, in shared memory. */
export type Turns = Int32Array<SharedArrayBuffer>;

export const createTurns = (): Turns => new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** Takes the next free row group; null if all are taken. */
export function nextGroup(turns: Turns, rows: number): number | null {
  const group = Atomics.add(turns, 0, 1);
  return group < groupsOf(rows) ? group : null;
}

type Reply = { number: number; group: number; encoded: EncodedGroup } | { number: number; failed: string };

/** Replies of threads. */
interface EncodeReplies {
  encoded(part: number, group: number, encoded: EncodedGroup): void;
  /** @param part null: the thread has exited, with the row groups that it had taken */
  failed(part: number | null, error: Error): void;
}

export interface EncodeThread {
  order(order: EncodeOrder): void;
  /** Stops the thread immediately. */
  close(): Promise<void>;
}

/** Starts a thread that encodes row groups of in-memory tables, in the order of their parts. @param entry the built encode-worker.js */
export function startEncodeThread(
  { encoded, failed }: EncodeReplies,
  entry = childEntry('encode-worker'),
): EncodeThread {
  const worker = new Worker(entry, { env: {} });
  worker.on('message', (reply: Reply) => {
    if ('failed' in reply) failed(reply.number, new Error(reply.failed));
    else encoded(reply.number, reply.group, reply.encoded);
  });
  worker.on('error', (error: Error) => failed(null, error));
  worker.on('exit', () => failed(null, new Error('the thread that encodes tables stopped early')));
  return {
    // The rule is for windows: a worker's postMessage has no target origin.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    order: (order) => worker.postMessage(order),
    async close() {
      worker.removeAllListeners('exit');
      await worker.terminate();
    },
  };
}

/** Main function of the worker. @param columnsOf makes the columns of each part from its input */
export function encodeOrders(columnsOf: Record<string, (input: never) => InMemoryColumns>): void {
  const port = parentPort!;
  port.on('message', ({ number, name, input, columns, rows, turns }: EncodeOrder) => {
    try {
      const make = columnsOf[name];
      if (!make) throw new Error(`unknown columns: ${name}`);
      const encode = inMemoryGroups(make(input as never), columns, rows);
      for (let group = nextGroup(turns, rows); group !== null; group = nextGroup(turns, rows)) {
        const encoded = encode(group);
        port.postMessage({ number, group, encoded } satisfies Reply, buffersOf(encoded));
      }
    } catch (error) {
      const failed = error instanceof Error ? (error.stack ?? error.message) : String(error);
      port.postMessage({ number, failed } satisfies Reply);
    }
  });
}

/** Buffers to transfer instead of copy; several columns may share a chunk. */
function buffersOf({ chunks }: EncodedGroup): ArrayBuffer[] {
  return [...new Set(chunks.flatMap(({ pages }) => pages.map(({ buffer }) => buffer as ArrayBuffer)))];
}
