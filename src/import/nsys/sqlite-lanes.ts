import { parentPort, Worker, workerData } from 'node:worker_threads';
import { childEntry } from '../../model/installation.js';
import { InferscopeError, type ErrorCode, type ErrorParts } from '../../model/errors.js';
import { bulkTables, type Kind } from './tables.js';
import { createDecoder, type DecodedBatch, type Decoder } from './sqlite-bulk.js';
import { openSqlite, type SqliteFile } from './sqlite-file.js';

/** Decodes pages, one request after the other: this thread or a worker. */
export interface Lane {
  decode(kind: Kind, pages: Uint32Array): Promise<DecodedBatch>;
  close(): Promise<void>;
}

type Reply = { batch: DecodedBatch } | { error: { code: ErrorCode; parts: ErrorParts } } | { fault: string };

/** Decodes on this thread: for a small file, starting a worker takes longer. */
export function mainThreadLane(file: SqliteFile): Lane {
  const decode = decoders(file);
  return {
    decode: (kind, pages) => Promise.resolve().then(() => decode(kind, pages)),
    close: () => Promise.resolve(),
  };
}

/** @param entry the built nsys-worker.js */
export function workerLane(path: string, entry = childEntry('nsys-worker')): Lane {
  const worker = new Worker(entry, { workerData: path, env: {} });
  const waiting: { resolve(batch: DecodedBatch): void; reject(error: unknown): void }[] = [];
  let failure: unknown = null;
  worker.on('message', (reply: Reply) => {
    const { resolve, reject } = waiting.shift()!;
    if ('batch' in reply) resolve(reply.batch);
    else if ('error' in reply) reject(new InferscopeError(reply.error.code, reply.error.parts));
    else reject(new Error(reply.fault));
  });
  const fail = (error: unknown): void => {
    failure = error;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on('error', fail);
  worker.on('exit', () => fail(new Error('the worker that reads the capture exited early')));
  return {
    decode(kind, pages) {
      if (failure !== null) return Promise.reject(failure as Error);
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        // A window's postMessage needs an origin; a worker's has none.
        // oxlint-disable-next-line unicorn/require-post-message-target-origin
        worker.postMessage({ kind, pages });
      });
    },
    async close() {
      worker.removeAllListeners('exit');
      await worker.terminate();
    },
  };
}

/** Body of the worker. */
export function answerRequests(): void {
  const port = parentPort!;
  const file = openSqlite(String(workerData));
  const decode = decoders(file);
  port.on('message', ({ kind, pages }: { kind: Kind; pages: Uint32Array }) => {
    try {
      const batch = decode(kind, pages);
      port.postMessage({ batch } satisfies Reply, buffersOf(batch));
    } catch (error) {
      const reply: Reply =
        error instanceof InferscopeError
          ? { error: { code: error.code, parts: error.parts } }
          : { fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
      port.postMessage(reply);
    }
  });
}

function decoders(file: SqliteFile): (kind: Kind, pages: Uint32Array) => DecodedBatch {
  const cache: Partial<Record<Kind, Decoder>> = {};
  return (kind, pages) => (cache[kind] ??= createDecoder(file, bulkTables[kind])).decode(pages);
}

/** Transferred, not copied. */
function buffersOf({ columns, shapes }: DecodedBatch): ArrayBuffer[] {
  return [...Object.values(columns), ...Object.values(shapes.columns)].map(
    ({ buffer }) => buffer as ArrayBuffer,
  );
}
