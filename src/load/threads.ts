import { Worker } from 'node:worker_threads';
import { childEntry } from '../model/installation.js';
import type { ThreadHealth } from './client-health.js';
import { monotonicNs } from '../model/clock.js';
import type { Exchange } from './exchange.js';
import type { PointControl, PointCounts, PointOutcome } from './run-point.js';
import type { LoadReply, LoadRequest, ThreadPlan } from './worker-messages.js';
import { exitText } from '../vocabulary/process-exit.js';

export interface LoadOutcome {
  exchanges: Exchange[];
  /** One per sending thread. */
  threads: ThreadHealth[];
  begin_ns: number;
  end_ns: number;
}

/** From "begin" to the first request: time for the message to reach every thread. */
const leadNs = 20e6;

/**
 * Runs a plan in separate threads, so that progress, samplers and garbage collection of this thread do not delay time
 * stamps.
 * @param entry the built load-worker.js
 */
export async function runLoad(
  plan: ThreadPlan,
  threads: number,
  control: PointControl,
  entry = childEntry('load-worker'),
): Promise<LoadOutcome> {
  const parts = splitPlan(plan, threads);
  const counts = parts.map((): PointCounts => ({ done: 0, failed: 0, in_flight: 0, tokens: 0 }));
  const workers = parts.map((part, number) =>
    startThread(part, entry, (threadCounts) => {
      counts[number] = threadCounts;
      control.onProgress?.(sum(counts));
    }),
  );
  const stop = () => workers.forEach((worker) => worker.post({ type: 'stop' }));
  control.signal.addEventListener('abort', stop, { once: true });
  if (control.signal.aborted) stop();
  try {
    await Promise.all(workers.map(({ ready }) => ready));
    const begin_ns = monotonicNs() + leadNs;
    for (const worker of workers) worker.post({ type: 'begin', begin_ns });
    return merge(await Promise.all(workers.map(({ outcome }) => outcome)));
  } finally {
    control.signal.removeEventListener('abort', stop);
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

function sum(counts: PointCounts[]): PointCounts {
  const total = { done: 0, failed: 0, in_flight: 0, tokens: 0 };
  for (const count of counts)
    for (const key of ['done', 'failed', 'in_flight', 'tokens'] as const) total[key] += count[key];
  return total;
}

/** Distributes requests in turn, and users (or slots) as evenly as possible. */
export function splitPlan(plan: ThreadPlan, threads: number): ThreadPlan[] {
  const { concurrency } = plan;
  const threadCount = Math.max(1, Math.min(threads, concurrency ?? threads, plan.requests.length));
  return Array.from({ length: threadCount }, (_, number) => ({
    ...plan,
    requests: plan.requests.filter((__, index) => index % threadCount === number),
    concurrency:
      concurrency === null ? null : Math.floor((concurrency + threadCount - 1 - number) / threadCount),
  }));
}

function startThread(plan: ThreadPlan, entry: string, onProgress: (counts: PointCounts) => void) {
  const worker = new Worker(entry);
  const post = (message: LoadRequest) => worker.postMessage(message, []);
  let begin = () => {};
  const ready = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const outcome = new Promise<PointOutcome>((resolve, reject) => {
    worker.on('message', (reply: LoadReply) => {
      if (reply.type === 'ready') begin();
      else if (reply.type === 'progress') onProgress(reply.counts);
      else if (reply.type === 'outcome') resolve(reply.outcome);
      else reject(new Error(reply.text));
    });
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a thread of the load generator ${exitText(null, code)}`)));
  });
  // The error is reported through `outcome`; a thread that ends first must not wait for it.
  outcome.catch(begin);
  post({ type: 'prepare', plan });
  return { post, ready, outcome, terminate: () => worker.terminate() };
}

function merge(outcomes: PointOutcome[]): LoadOutcome {
  return {
    exchanges: outcomes.flatMap(({ exchanges }) => exchanges).sort((x, y) => x.index - y.index),
    threads: outcomes.map(({ health }) => health),
    begin_ns: Math.min(...outcomes.map(({ begin_ns: ns }) => ns)),
    end_ns: Math.max(...outcomes.map(({ end_ns: ns }) => ns)),
  };
}
