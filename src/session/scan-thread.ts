import { parentPort, Worker, workerData } from 'node:worker_threads';
import { childEntry } from '../model/installation.js';
import type { FileScan, RowTaker } from '../model/workbench.js';
import { duckdb } from './duckdb.js';
import { scan } from './scan.js';

/** The message to a thread. */
interface ScanOrder extends FileScan<unknown> {
  /** Not 0 if no more rows are wanted. */
  stop: Int32Array<SharedArrayBuffer>;
}

type Reply = { result: unknown } | { failed: string };

export interface ScanThread {
  /** The result of the row taker. */
  result: Promise<unknown>;
  /** Stops the thread before its next rows. */
  close(): Promise<void>;
}

/**
 * Starts a thread with its own database that reads the result of a statement over files.
 * @param order `input` is for the row taker: shared arrays are not copied
 * @param entry the built scan-worker.js
 */
export function startScanThread(order: FileScan<unknown>, entry = childEntry('scan-worker')): ScanThread {
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(entry, { workerData: { ...order, stop } satisfies ScanOrder, env: {} });
  const ended = new Promise<void>((resolve) => worker.on('exit', () => resolve()));
  const result = new Promise<unknown>((resolve, reject) => {
    worker.on('message', (reply: Reply) => {
      if ('failed' in reply) reject(new Error(reply.failed));
      else resolve(reply.result);
    });
    worker.on('error', reject);
    worker.on('exit', () => reject(new Error('the thread that reads the capture stopped early')));
  });
  return {
    result,
    async close() {
      // Not terminate(): ending a thread inside DuckDB's binding ends the process (1.5.5, "Napi::Error").
      Atomics.store(stop, 0, 1);
      await ended;
    },
  };
}

/** Main function of the worker. @param taker as in Workbench.scanFiles */
export async function answerScan(taker: (input: never) => RowTaker<unknown>): Promise<void> {
  const order = workerData as ScanOrder;
  const reply = await read(order, taker(order.input as never));
  // The rule is for windows: a worker's postMessage has no target origin.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  parentPort!.postMessage(reply satisfies Reply);
}

async function read(order: ScanOrder, { take, result }: RowTaker<unknown>): Promise<Reply> {
  try {
    const instance = await duckdb().DuckDBInstance.create(':memory:', {
      threads: '1',
      memory_limit: '256MiB',
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
    });
    for await (const batch of scan(await instance.connect(), order.sql)) {
      if (Atomics.load(order.stop, 0) !== 0) return { failed: 'it was stopped' };
      take(batch);
    }
    return { result: result() };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}
