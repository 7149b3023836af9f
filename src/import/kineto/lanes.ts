import { Worker } from 'node:worker_threads';
import type { Batch } from './batch.js';
import type { TraceClock } from './chunk-parser.js';
import type { Request } from './worker-messages.js';

export interface ParsedChunk {
  batch: Batch;
  buffer: Uint8Array;
  lane: number;
}

/** Worker threads that parse chunks in turn; each has its own name table. */
export interface Lanes {
  count: number;
  parse(lane: number, request: Request): Promise<ParsedChunk>;
  close(): Promise<void>;
}

/** @param entry the built kineto-worker.js */
export function openLanes(entry: string, count: number, clock: TraceClock): Lanes {
  const lanes = Array.from({ length: count }, (_, lane) => {
    const waiting: { resolve(batch: Batch): void; reject(error: unknown): void }[] = [];
    let failure: unknown = null;
    const worker = new Worker(entry, { workerData: clock, env: {} });
    worker.on('message', (batch: Batch) => waiting.shift()?.resolve(batch));
    const fail = (error: unknown) => {
      failure = error;
      for (const { reject } of waiting.splice(0)) reject(error);
    };
    worker.on('error', fail);
    worker.on('exit', () => fail(new Error('a trace reader worker exited early')));
    return {
      parse: (request: Request) =>
        new Promise<ParsedChunk>((resolve, reject) => {
          if (failure !== null) return reject(failure);
          waiting.push({ resolve: (batch) => resolve({ batch, buffer: request.buffer, lane }), reject });
          worker.postMessage(request, []);
        }),
      close: () => worker.terminate(),
    };
  });
  return {
    count,
    parse: (lane, request) => lanes[lane]!.parse(request),
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  };
}
