import { parentPort, Worker } from 'node:worker_threads';
import { childEntry } from '../../model/installation.js';
import type { HeldColumns } from '../../model/workbench.js';
import type { FileColumn } from './file-column.js';
import type { EncodedGroup } from './group.js';
import { groupsOf, heldGroups } from './held-group.js';

/** A part of a held table, as sent to a thread. */
interface EncodeOrder {
  /** What replies name it by. */
  number: number;
  /** As in HeldPart. */
  name: string;
  input: unknown;
  columns: readonly FileColumn[];
  rows: number;
  turns: Turns;
}

/** Row groups not yet taken by any thread: one number in shared memory. */
export type Turns = Int32Array<SharedArrayBuffer>;

export const createTurns = (): Turns => new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** The next row group that nobody has taken; null: all are. */
export function nextGroup(turns: Turns, rows: number): number | null {
  const group = Atomics.add(turns, 0, 1);
  return group < groupsOf(rows) ? group : null;
}

type Reply = { number: number; group: number; encoded: EncodedGroup } | { number: number; failed: string };

/** What comes back from threads. */
interface EncodeReplies {
  encoded(part: number, group: number, encoded: EncodedGroup): void;
  /** @param part null: the thread has ended, with whatever it had taken */
  failed(part: number | null, error: Error): void;
}

export interface EncodeThread {
  order(order: EncodeOrder): void;
  /** Ends it, whatever it was doing. */
  close(): Promise<void>;
}

/** A thread that encodes row groups of held tables, in the order in which their parts are sent. @param entry the built encode-worker.js */
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
  worker.on('exit', () => failed(null, new Error('the thread that encodes tables ended early')));
  return {
    // A window's postMessage wants an origin; a worker's has none.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    order: (order) => worker.postMessage(order),
    async close() {
      worker.removeAllListeners('exit');
      await worker.terminate();
    },
  };
}

/** The body of the worker. @param columnsOf makes the columns of each part from its input */
export function encodeOrders(columnsOf: Record<string, (input: never) => HeldColumns>): void {
  const port = parentPort!;
  port.on('message', ({ number, name, input, columns, rows, turns }: EncodeOrder) => {
    try {
      const make = columnsOf[name];
      if (!make) throw new Error(`no thread knows the columns ${name}`);
      const encode = heldGroups(make(input as never), columns, rows);
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

/** Handed over, not copied; several columns may share a chunk. */
function buffersOf({ chunks }: EncodedGroup): ArrayBuffer[] {
  return [...new Set(chunks.flatMap(({ pages }) => pages.map(({ buffer }) => buffer as ArrayBuffer)))];
}
