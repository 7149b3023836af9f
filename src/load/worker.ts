import { parentPort } from 'node:worker_threads';
import { messageOf } from '../model/errors.js';
import { runPoint } from './run-point.js';
import type { LoadReply, LoadRequest } from './worker-messages.js';

// Built as dist/load-worker.js: one of several threads that send and read, when one is not enough.
const controller = new AbortController();
const reply = (message: LoadReply) => parentPort!.postMessage(message, []);

parentPort!.on('message', (request: LoadRequest) => {
  if (request.type === 'stop') {
    controller.abort();
    return;
  }
  const onProgress = (counts: { done: number; failed: number; in_flight: number; tokens: number }) =>
    reply({ type: 'progress', counts });
  runPoint(request.plan, { signal: controller.signal, onProgress }).then(
    (outcome) => reply({ type: 'outcome', outcome }),
    (error: unknown) => reply({ type: 'error', text: messageOf(error) }),
  );
});
