import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ThreadHealth, watchThread } from './client-health.js';
import { arrivalQueue } from './arrival-queue.js';
import { monotonicNs } from '../model/clock.js';
import { openConnections, originOf } from './connections.js';
import { exchange, type Exchange, type ExchangeHandle, type Sender } from './exchange.js';
import type { PlannedRequest } from './load-shape.js';
import { type LoadTarget, requestEncoder } from './target.js';

/** One thread's share of one load. */
export interface PointPlan {
  target: LoadTarget;
  requests: PlannedRequest[];
  /** Users of a closed loop; for an open one the maximum concurrent requests, null without a limit. */
  concurrency: number | null;
  loop: 'closed' | 'open';
  /** Closed loop: stagger user start over this period. */
  ramp_s: number;
  /** No request starts after this time; running ones are awaited. Infinity for no limit. */
  seconds: number;
  /** CLOCK_MONOTONIC start of the load, the same in every thread. */
  begin_ns: number;
  /** Drops the generated text, so that no tokenizer can count it. */
  discard_text?: boolean;
}

export interface PointOutcome {
  exchanges: Exchange[];
  health: ThreadHealth;
  /** From the start of the load to the end of the last exchange, CLOCK_MONOTONIC ns. */
  begin_ns: number;
  end_ns: number;
}

export interface PointCounts {
  done: number;
  failed: number;
  in_flight: number;
  /** Chunks of finished requests. */
  tokens: number;
}

export interface PointControl {
  signal: AbortSignal;
  /** Called a few times per second. */
  onProgress?: (counts: PointCounts) => void;
}

/** Sends the requests of a plan and waits for all answers. Aborting ends the running ones. */
export async function runPoint(plan: PointPlan, control: PointControl): Promise<PointOutcome> {
  const connections = openConnections(originOf(plan.target.baseUrl));
  const encodeBody = requestEncoder(plan.target);
  const sender: Sender = {
    connections,
    arrivals: arrivalQueue(),
    keepText: plan.discard_text !== true,
    encode: ({ prompt, output_tokens: tokens }) => encodeBody(prompt, tokens),
  };
  // Every waiting user listens to it.
  setMaxListeners(0, control.signal);
  const inFlight = new Set<ExchangeHandle>();
  const exchanges: Exchange[] = [];
  let failed = 0;
  let tokens = 0;
  const lead = (plan.begin_ns - monotonicNs()) / 1e6;
  if (lead > 0) await sleep(lead);
  const healthOf = watchThread();
  const timer = setInterval(() => {
    const limit = monotonicNs() - plan.target.timeoutMs * 1e6;
    for (const handle of inFlight) if (handle.dispatched_ns < limit) handle.abort('timeout');
    control.onProgress?.({ done: exchanges.length, failed, in_flight: inFlight.size, tokens });
  }, 200);
  const cancel = () => inFlight.forEach((handle) => handle.abort('cancelled'));
  control.signal.addEventListener('abort', cancel, { once: true });

  async function send(request: PlannedRequest, scheduledNs: number): Promise<void> {
    const handle = exchange(sender, request, scheduledNs);
    inFlight.add(handle);
    const exchangeResult = await handle.result;
    inFlight.delete(handle);
    exchanges.push(exchangeResult);
    tokens += exchangeResult.chunk_ns.length;
    if (exchangeResult.status !== 'ok') failed++;
  }

  try {
    await (plan.loop === 'closed' ? closedLoop(plan, control, send) : openLoop(plan, control, send));
  } finally {
    clearInterval(timer);
    control.signal.removeEventListener('abort', cancel);
  }
  const health = healthOf();
  const end = exchanges.reduce((last, { closed_ns }) => Math.max(last, closed_ns), plan.begin_ns);
  connections.close();
  return { exchanges, health, begin_ns: plan.begin_ns, end_ns: end };
}

type Send = (request: PlannedRequest, scheduledNs: number) => Promise<void>;

function isOver({ begin_ns, seconds }: PointPlan, { signal }: PointControl): boolean {
  return signal.aborted || monotonicNs() - begin_ns >= seconds * 1e9;
}

async function closedLoop(plan: PointPlan, control: PointControl, send: Send): Promise<void> {
  let next = 0;
  async function user(number: number, users: number): Promise<void> {
    const wait = (plan.ramp_s * 1000 * number) / users;
    if (wait > 0) await sleep(wait, undefined, { signal: control.signal }).catch(() => undefined);
    let free = Math.max(plan.begin_ns + wait * 1e6, 0);
    while (next < plan.requests.length && !isOver(plan, control)) {
      const request = plan.requests[next++]!;
      await send(request, free);
      free = monotonicNs();
    }
  }
  const users = Math.min(plan.concurrency ?? 1, plan.requests.length);
  await Promise.all(Array.from({ length: users }, (_, number) => user(number, users)));
}

/** Arrivals do not wait for answers. With a concurrency limit they wait for a slot, and that wait counts as latency. */
async function openLoop(plan: PointPlan, control: PointControl, send: Send): Promise<void> {
  const queue: { request: PlannedRequest; dueNs: number }[] = [];
  const running = new Set<Promise<void>>();
  const bound = plan.concurrency ?? Number.POSITIVE_INFINITY;

  function start(): void {
    while (running.size < bound && queue.length > 0 && !control.signal.aborted) {
      const { request, dueNs } = queue.shift()!;
      const sent = send(request, dueNs).finally(() => {
        running.delete(sent);
        start();
      });
      running.add(sent);
    }
  }

  for (const request of plan.requests) {
    const dueNs = plan.begin_ns + (request.due_ns ?? 0);
    const wait = (dueNs - monotonicNs()) / 1e6;
    // Timers have a resolution of 1 ms: a request due within the next half is sent now rather than late.
    if (wait > 0.5) await sleep(wait, undefined, { signal: control.signal }).catch(() => undefined);
    if (isOver(plan, control)) break;
    queue.push({ request, dueNs });
    start();
  }
  while (running.size > 0) await Promise.race(running);
}
