import type { ServingPoint, ServingResult } from '../../../model/documents/serving.js';
import { loadLevel } from '../../../facts/serving/answers.js';
import { countsFromDueTime, queueing, type Queueing, unloadedTtft } from '../../../facts/serving/queueing.js';
import { serverProfile } from '../../../facts/waterfall/serving-words.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { servingOf } from '../session-analyses.js';
import { ms, percent } from '../words.js';
import { formatCount, formatQuantity } from '../../../vocabulary/format.js';
import { loadLabel } from '../../../vocabulary/loads.js';

/** The load exceeds what the server processes concurrently: requests queue, or miss their SLO. */
export const requestsQueue: Rule = {
  id: 'requests_queue',
  title: 'Requests queue at the server',
  docs: {
    finds: 'The load exceeds what the server processes concurrently: requests queue or miss their SLO.',
    needs: 'a load test (`inferscope bench serve`)',
    gain: 'Affected: the queueing time per request. No gain is claimed, because it depends on the load.',
    change:
      'Let the server process more requests concurrently, add replicas, or limit the requests in flight.',
    withheld:
      "no queue at any load (by the server's own queue times, where it reports them), and the SLO is met",
  },
  references: [
    { title: "Little's law", url: 'https://doi.org/10.1287/opre.9.3.383' },
    {
      title: 'Orca: continuous batching of requests',
      url: 'https://www.usenix.org/conference/osdi22/presentation/yu',
    },
  ],
  async find(context) {
    const serving = await servingOf(context);
    if (!serving) return { outcome: 'not_applicable', why: 'The session has no load test.' };
    const { points, probe } = serving.data;
    const unloaded = unloadedTtft(points, probe);
    const waits = points.flatMap((point) => {
      const queue = queueing(point, unloaded);
      return queue ? [{ point, queue, inServerMs: serverQueueMs(context, point) }] : [];
    });
    const sorted = waits.toSorted((x, y) => y.queue.share - x.queue.share);
    const [worst] = sorted;
    const queued = sorted.find(
      ({ queue, inServerMs }) => queue.queues && (inServerMs === null || inServerMs >= queue.wait_ms / 2),
    );
    if (queued) return { outcome: 'fired', findings: [await findQueue(context, queued, serving.data)] };
    const missed = lowestLoadWithoutSlo(serving.data);
    if (missed) return { outcome: 'fired', findings: [await findMissedSlo(context, missed, serving.data)] };
    return {
      outcome: 'not_fired',
      why: worst?.queue.queues
        ? `At ${loadLabel(worst.point.load)} a request waits ${ms(worst.queue.wait_ms)} longer for its first token than alone, but only ${ms(worst.inServerMs!)} in the server's queue.`
        : worst
          ? `At most ${percent(worst.queue.share)} of a request's time is extra wait for its first token (${loadLabel(worst.point.load)}).`
          : 'No load has times to the first token.',
    };
  },
};

/** Mean time in the server's queue by the server's own metrics; null if it reports none. */
const serverQueueMs = ({ waterfalls }: FindingContext, { execution_id }: ServingPoint): number | null =>
  waterfalls
    .find((stage) => stage.kind === 'request' && stage.execution_id === execution_id)
    ?.bars.find(({ id }) => id === 'host.queue')?.ms ?? null;

/** The example is for vLLM, and for a server that is not recognized. */
const changeOf = ({ target: { server } }: ServingResult): FoundDraft['change'] => ({
  kind: 'config',
  text: 'Let the server process more requests concurrently (continuous batching, more sequences, more replicas), or limit the requests in flight to what it can process.',
  example:
    server === null || /vllm/i.test(server) ? 'vllm serve --max-num-seqs 64 --data-parallel-size 2' : null,
});
const check = 'repeat the load test with the same load: TTFT should be near that of one user';

const timesSql = `SELECT execution_id, count(*) AS requests, avg(first_token_ns - sent_ns) / 1e6 AS ttft_ms,
     avg(first_token_ns - least(scheduled_ns, sent_ns)) / 1e6 AS ttft_from_schedule_ms, avg(end_ns - sent_ns) / 1e6 AS e2e_ms,
     count(*) / ((max(end_ns) - min(sent_ns)) / 1e9) AS requests_per_s
   FROM requests WHERE status = 'ok' AND NOT coalesce(warmup, false) GROUP BY execution_id ORDER BY execution_id`;

async function timesOf(context: FindingContext, { points, probe }: ServingResult) {
  const alone = probe?.ttft_ms ?? null;
  const { evidence } = await context.evidence<{
    execution_id: string;
    ttft_ms: number;
    ttft_from_schedule_ms: number;
    requests_per_s: number;
  }>(timesSql, (rows) =>
    rows
      .map(({ execution_id, ttft_ms, ttft_from_schedule_ms, requests_per_s }) => {
        const point = points.find((candidate) => candidate.execution_id === execution_id);
        const ttft = point && countsFromDueTime(point.load) ? ttft_from_schedule_ms : ttft_ms;
        return `${point ? loadLabel(point.load) : execution_id}: TTFT ${ms(ttft)}, ${formatQuantity(requests_per_s, 'req/s')}`;
      })
      .concat(alone === null ? [] : `one request before the loads: TTFT ${ms(alone)}`)
      .join('; '),
  );
  return evidence;
}

async function findQueue(
  context: FindingContext,
  { point, queue }: { point: ServingPoint; queue: Queueing },
  serving: ServingResult,
): Promise<FoundDraft> {
  const { goodput, requests, load, client } = point;
  const slo = goodput.share.value === null ? '' : `; ${percent(goodput.share.value)} of requests met the SLO`;
  const users = load.kind === 'closed' ? load.concurrency : null;
  const computed =
    users === null
      ? ''
      : ` On average ${formatCount(users * (1 - queue.share))} of ${users} requests in flight were processed; the others waited.`;
  // A late client lengthens TTFT as a queue does.
  const lateClient = client.bound
    ? ' The client was also late at this load: part of the wait may be its own.'
    : '';
  return {
    stage: null,
    title: `Requests queue at ${loadLabel(point.load)}: ${percent(queue.share)} of a request's time is extra wait for its first token (TTFT ${ms(queue.ttft_ms)}, alone ${ms(queue.unloaded_ms)})${slo}`,
    cause: `The server processes fewer requests concurrently than are in flight.${computed}${flatRate(point, serving)}${lateClient}`,
    change: changeOf(serving),
    at_stake_ms: queue.wait_ms,
    run_ms: queue.wait_ms * requests.ok,
    share: queue.share,
    gain: null,
    confidence: client.bound ? 'low' : 'high',
    bars: [],
    evidence: [await timesOf(context, serving)],
    check,
  };
}

/** Throughput at this load compared with the lowest one. */
function flatRate(point: ServingPoint, { points }: ServingResult): string {
  const lowest = points.toSorted((x, y) => loadLevel(x) - loadLevel(y))[0]!;
  const [low, high] = [lowest, point].map((load) => load.throughput.output_tokens_per_s.value);
  if (lowest === point || low === null || high === null || !low || !high) return '';
  return ` From ${loadLabel(lowest.load)} to ${loadLabel(point.load)} throughput went from ${formatQuantity(low, 'tok/s')} to ${formatQuantity(high, 'tok/s')}.`;
}

/** The lowest load, if no load met the SLO. */
function lowestLoadWithoutSlo({ points, slo }: ServingResult): ServingPoint | null {
  if (slo === null || points.length === 0 || points.some(({ goodput }) => goodput.meets_slo !== false))
    return null;
  return points.toSorted((x, y) => loadLevel(x) - loadLevel(y))[0]!;
}

async function findMissedSlo(
  context: FindingContext,
  point: ServingPoint,
  serving: ServingResult,
): Promise<FoundDraft> {
  const slo = serving.slo!;
  const goodputShare = point.goodput.share.value ?? 0;
  const missed = (['ttft', 'tpot', 'e2e'] as const).flatMap((name) => {
    const spread = point.latency[name];
    const bound = slo[`${name}_ms`];
    return bound !== null && 'mean' in spread
      ? [{ name, ms: spread.mean, over: spread.mean - bound, bound }]
      : [];
  });
  const worst = missed.toSorted((x, y) => y.ms / y.bound - x.ms / x.bound)[0];
  const text =
    worst && worst.over > 0
      ? ` (mean ${worst.name.toUpperCase()} ${ms(worst.ms)}, allowed ${ms(worst.bound)})`
      : '';
  return {
    stage: null,
    title: `No load met the SLO: ${percent(goodputShare)} of requests did at ${loadLabel(point.load)}, the lowest tried${text}`,
    cause: 'Requests are slower than the SLO allows, and not mainly because of queueing.',
    change: {
      kind: 'config',
      text: 'Try a lower load; if a single user also misses the SLO, make the server faster: a profile shows where the time goes.',
      example: serverProfile(context.manifest.workload),
    },
    at_stake_ms: Math.max(0, worst?.over ?? 0),
    share: 1 - goodputShare,
    gain: null,
    confidence: 'high',
    bars: [],
    evidence: [await timesOf(context, serving)],
    check: 'repeat the load test with the same --slo',
  };
}
