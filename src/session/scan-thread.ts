import { parentPort, Worker, workerData } from 'node:worker_threads';
import { childEntry } from '../model/installation.js';
import type { Batch } from '../model/workbench.js';

/** Rows of a message: few enough that those on their way do not count, enough that messages do not. */
const messageRows = 65_536;
/** Messages sent and not yet taken. */
const messagesAhead = 16;

type Reply = { batch: Batch } | { end: true } | { failed: string };

export interface ScanThread {
  batches: AsyncIterable<Batch>;
  /** Ends it, whatever it was doing. */
  close(): Promise<void>;
}

/**
 * Reads the result of a statement over files on a thread with a database of its own, from now on.
 * @param entry the built scan-worker.js
 */
export function startScanThread(sql: string, entry = childEntry('scan-worker')): ScanThread {
  const worker = new Worker(entry, { workerData: sql, env: {} });
  const arrived: Reply[] = [];
  let wake: (() => void) | null = null;
  const take = (reply: Reply): void => {
    arrived.push(reply);
    wake?.();
  };
  worker.on('message', take);
  worker.on('error', (error: Error) => take({ failed: error.message }));
  worker.on('exit', () => take({ failed: 'the thread that reads the capture ended early' }));
  const ready = () => arrived.length > 0;
  async function* batches(): AsyncGenerator<Batch> {
    for (;;) {
      while (!ready()) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const reply = arrived.shift()!;
      if ('failed' in reply) throw new Error(reply.failed);
      if ('end' in reply) return;
      yield reply.batch;
      // A window's postMessage wants an origin; a worker's has none.
      // oxlint-disable-next-line unicorn/require-post-message-target-origin
      worker.postMessage('taken');
    }
  }
  return {
    batches: batches(),
    async close() {
      worker.removeAllListeners('exit');
      await worker.terminate();
    },
  };
}

/** The body of the worker. @param scan streams a statement's result */
export async function sendBatches(scan: (sql: string) => AsyncIterable<Batch>): Promise<void> {
  const port = parentPort!;
  let ahead = 0;
  let wake: (() => void) | null = null;
  port.on('message', () => {
    ahead--;
    wake?.();
  });
  const room = () => ahead < messagesAhead;
  const send = async (batch: Batch): Promise<void> => {
    const buffers = Object.values(batch.columns).map(({ buffer }) => buffer as ArrayBuffer);
    port.postMessage({ batch } satisfies Reply, buffers);
    ahead++;
    while (!room()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  try {
    let open: Batch | null = null;
    for await (const { rows, columns } of scan(String(workerData))) {
      open ??= {
        rows: 0,
        columns: Object.fromEntries(
          Object.keys(columns).map((name) => [name, new Float64Array(messageRows)]),
        ),
      };
      for (const [name, values] of Object.entries(columns)) open.columns[name]!.set(values, open.rows);
      open.rows += rows;
      // A chunk has at most 2048 rows, a whole part of a message.
      if (open.rows + 2048 > messageRows) {
        await send(open);
        open = null;
      }
    }
    if (open) await send(open);
    port.postMessage({ end: true } satisfies Reply);
  } catch (error) {
    port.postMessage({ failed: error instanceof Error ? error.message : String(error) } satisfies Reply);
  }
  port.unref();
}
