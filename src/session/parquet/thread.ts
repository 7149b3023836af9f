import { parentPort, Worker } from 'node:worker_threads';
import { childEntry } from '../../model/installation.js';
import type { Columns } from '../../model/workbench.js';
import type { Digest } from '../kept-file.js';
import { createParquet, type ParquetFile } from './file.js';
import type { FileColumn } from './file-column.js';

type Order =
  | { type: 'open'; file: number; path: string; columns: readonly FileColumn[] }
  | { type: 'group'; file: number; group: Columns; rows: number }
  | { type: 'close'; file: number };
type Reply =
  | { type: 'group'; file: number; group: Columns }
  | { type: 'closed'; file: number; rows: number; digest: Digest }
  | { type: 'failed'; file: number; message: string; code: string | undefined };

/** A file that another thread writes. */
interface RemoteFile {
  /** Hands the arrays over; settles when they are written, and freeGroup gives them again. */
  writeGroup(group: Columns, rows: number): Promise<void>;
  freeGroup(): Columns | undefined;
  close(): void;
  written: Promise<{ rows: number; digest: Digest }>;
}

/** A thread that encodes and writes Parquet files, several at a time, in the order of what it is given. */
export interface ParquetThread {
  open(path: string, columns: readonly FileColumn[]): RemoteFile;
  /** Ends it, whatever it was doing. */
  close(): Promise<void>;
}

interface Pending {
  groups: { resolve(): void; reject(error: unknown): void }[];
  free: Columns[];
  resolve(written: { rows: number; digest: Digest }): void;
  reject(error: unknown): void;
}

/** @param entry the built parquet-worker.js */
export function startParquetThread(entry = childEntry('parquet-worker')): ParquetThread {
  const worker = new Worker(entry, { env: {} });
  const files: Pending[] = [];
  // A window's postMessage wants an origin; a worker's has none.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  const send = (order: Order, transfer: ArrayBuffer[] = []) => worker.postMessage(order, transfer);
  const fail = (file: Pending, error: unknown): void => {
    for (const { reject } of file.groups.splice(0)) reject(error);
    file.reject(error);
  };
  worker.on('message', (reply: Reply) => {
    const file = files[reply.file]!;
    if (reply.type === 'group') {
      file.free.push(reply.group);
      file.groups.shift()!.resolve();
    } else if (reply.type === 'closed') file.resolve(reply);
    else fail(file, Object.assign(new Error(reply.message), { code: reply.code }));
  });
  const died = (error: unknown): void => files.forEach((file) => fail(file, error));
  worker.on('error', died);
  worker.on('exit', () => died(new Error('the thread that writes tables ended early')));
  return {
    open(path, columns) {
      const number = files.length;
      const written = new Promise<{ rows: number; digest: Digest }>((resolve, reject) => {
        files.push({ groups: [], free: [], resolve, reject });
      });
      // Who waits for it is told; until somebody does, a failure must not end the process.
      written.catch(() => {});
      const own = files[number]!;
      send({ type: 'open', file: number, path, columns });
      return {
        written,
        freeGroup: () => own.free.pop(),
        close: () => send({ type: 'close', file: number }),
        writeGroup(group, rows) {
          return new Promise((resolve, reject) => {
            own.groups.push({ resolve, reject });
            send({ type: 'group', file: number, group, rows }, buffersOf(group));
          });
        },
      };
    },
    async close() {
      worker.removeAllListeners('exit');
      await worker.terminate();
    },
  };
}

/** The body of the worker. */
export function writeOrders(): void {
  const port = parentPort!;
  const files = new Map<number, ParquetFile>();
  const failed = new Set<number>();
  port.on('message', (order: Order) => {
    if (failed.has(order.file)) return;
    try {
      if (order.type === 'open') files.set(order.file, createParquet(order.path, order.columns));
      else if (order.type === 'group') {
        files.get(order.file)!.writeGroup(order.group, order.rows);
        const reply: Reply = { type: 'group', file: order.file, group: order.group };
        port.postMessage(reply, buffersOf(order.group));
      } else {
        const { rows, digest } = files.get(order.file)!.close();
        port.postMessage({ type: 'closed', file: order.file, rows, digest } satisfies Reply);
      }
    } catch (error) {
      failed.add(order.file);
      const { message, code } = error as NodeJS.ErrnoException;
      port.postMessage({ type: 'failed', file: order.file, message, code } satisfies Reply);
    }
  });
}

/** Handed over, not copied. */
function buffersOf(group: Columns): ArrayBuffer[] {
  return Object.values(group).map(({ buffer }) => buffer as ArrayBuffer);
}
