import { Worker } from 'node:worker_threads';
import { childEntry } from '../model/installation.js';
import type { ThreadHealth } from './client-health.js';
import { monotonicNs } from './clock.js';
import type { Exchange } from './exchange.js';
import { type PointControl, type PointOutcome, type PointPlan, runPoint } from './run-point.js';
import type { LoadReply, LoadRequest } from './worker-messages.js';

export interface LoadOutcome {
  exchanges: Exchange[];
  /** One a thread that sent. */
  threads: ThreadHealth[];
  begin_ns: number;
  end_ns: number;
}

/** Workers need this long to start and load the client; the load begins after it, in all of them at once. */
const startMs = 400;

/** Runs a plan in this thread, or spread over several. @param entry the built load-worker.js */
export async function runLoad(
  plan: Omit<PointPlan, 'begin_ns'>,
  threads: number,
  control: PointControl,
  entry = childEntry('load-worker'),
): Promise<LoadOutcome> {
  if (threads <= 1) {
    const outcome = await runPoint({ ...plan, begin_ns: monotonicNs() }, control);
    return merge([outcome]);
  }
  const begin_ns = monotonicNs() + startMs * 1e6;
  const counts = Array.from({ length: threads }, () => ({ done: 0, failed: 0, in_flight: 0, tokens: 0 }));
  const outcomes = await Promise.all(
    shares({ ...plan, begin_ns }, threads).map((share, number) =>
      inWorker(share, control.signal, entry, (own) => {
        counts[number] = own;
        control.onProgress?.(sum(counts));
      }),
    ),
  );
  return merge(outcomes);
}

function sum(counts: { done: number; failed: number; in_flight: number; tokens: number }[]) {
  const total = { done: 0, failed: 0, in_flight: 0, tokens: 0 };
  for (const one of counts)
    for (const key of ['done', 'failed', 'in_flight', 'tokens'] as const) total[key] += one[key];
  return total;
}

/** Requests in turn, users (or slots) as evenly as they go. */
export function shares(plan: PointPlan, threads: number): PointPlan[] {
  const { concurrency } = plan;
  const used = Math.max(1, Math.min(threads, concurrency ?? threads, plan.requests.length));
  return Array.from({ length: used }, (_, number) => ({
    ...plan,
    requests: plan.requests.filter((__, index) => index % used === number),
    concurrency: concurrency === null ? null : Math.floor((concurrency + used - 1 - number) / used),
  }));
}

function inWorker(
  plan: PointPlan,
  signal: AbortSignal,
  entry: string,
  onProgress: NonNullable<PointControl['onProgress']>,
): Promise<PointOutcome> {
  const worker = new Worker(entry, { env: {} });
  const post = (message: LoadRequest) => worker.postMessage(message, []);
  const stop = () => post({ type: 'stop' });
  return new Promise<PointOutcome>((resolve, reject) => {
    worker.on('message', (reply: LoadReply) => {
      if (reply.type === 'progress') onProgress(reply.counts);
      else if (reply.type === 'outcome') resolve(reply.outcome);
      else reject(new Error(reply.text));
    });
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a thread of the load generator ended with ${code}`)));
    signal.addEventListener('abort', stop, { once: true });
    post({ type: 'run', plan });
    if (signal.aborted) stop();
  }).finally(async () => {
    signal.removeEventListener('abort', stop);
    await worker.terminate();
  });
}

function merge(outcomes: PointOutcome[]): LoadOutcome {
  return {
    exchanges: outcomes.flatMap(({ exchanges }) => exchanges).sort((x, y) => x.index - y.index),
    threads: outcomes.map(({ health }) => health),
    begin_ns: Math.min(...outcomes.map(({ begin_ns: at }) => at)),
    end_ns: Math.max(...outcomes.map(({ end_ns: at }) => at)),
  };
}
