import { parentPort } from 'node:worker_threads';
import { messageOf } from '../model/errors.js';
import { runPoint, type PointCounts } from './run-point.js';
import { askForShortSlices } from './time-slice.js';
import type { LoadReply, LoadRequest, ThreadPlan } from './worker-messages.js';

// Built as dist/load-worker.js: a thread that only sends and reads.
const controller = new AbortController();
let prepared: ThreadPlan | null = null;
const reply = (message: LoadReply) => parentPort!.postMessage(message, []);

parentPort!.on('message', (request: LoadRequest) => {
  if (request.type === 'stop') controller.abort();
  else if (request.type === 'prepare') {
    prepared = request.plan;
    void askForShortSlices().then(() => reply({ type: 'ready' }));
  } else if (prepared !== null) {
    const onProgress = (counts: PointCounts) => reply({ type: 'progress', counts });
    runPoint({ ...prepared, begin_ns: request.begin_ns }, { signal: controller.signal, onProgress }).then(
      (outcome) => reply({ type: 'outcome', outcome }),
      (error: unknown) => reply({ type: 'error', text: messageOf(error) }),
    );
  }
});
