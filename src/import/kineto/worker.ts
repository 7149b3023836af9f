import { parentPort, workerData } from 'node:worker_threads';
import { createChunkParser, type TraceClock } from './chunk-parser.js';
import { type Request, transferList } from './worker-messages.js';

// Built as dist/kineto-worker.js: a worker thread that parses trace chunks into columns.
const parser = createChunkParser(workerData as TraceClock);
parentPort!.on('message', ({ buffer, from, end, last }: Request) => {
  const batch = parser.parse(buffer, from, end, last);
  parentPort!.postMessage(batch, transferList(batch));
});
