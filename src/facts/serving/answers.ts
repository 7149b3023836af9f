import type { Issue } from '../../model/document.js';
import {
  type LoadPlan,
  maxEventLoopUtilization,
  type ServingPoint,
  type ServingResult,
  type Slo,
} from '../../model/documents/serving.js';
import { queueing, unloadedTtft } from './queueing.js';
import { formatPercent, formatQuantity } from '../../vocabulary/format.js';
import { loadLabel, sloLabel } from '../../vocabulary/loads.js';
import { capitalize } from '../../vocabulary/sentence.js';
import { issuesAt, quantity, sentence } from '../../vocabulary/sentence-template.js';
import type { IssueCode } from '../../model/issue-codes.js';

/** Users of a closed loop, requests per second of an open one. */
export function loadLevel({ load }: Pick<ServingPoint, 'load'>): number {
  return load.rate_per_s ?? load.concurrency ?? 0;
}

/** Gain per doubling of the load below which throughput counts as flat. */
const gainPerDoubling = 0.1;
/** A server that completes less than this share of the offered load falls behind. */
const minCompletedShare = 0.95;

/**
 * The saturation point: the lowest load from which no higher one gave 10 % more output per doubling; of a single load
 * whether requests mostly queue. In an open loop: the first load of which the server completes less than 95 %.
 */
export function saturation(
  points: readonly ServingPoint[],
  probe: LoadPlan['probe'],
): ServingResult['saturation'] {
  const sorted = [...points].sort((x, y) => loadLevel(x) - loadLevel(y));
  if (sorted.length > 0 && sorted.every(({ load }) => load.kind !== 'closed'))
    return fallsBehind(sorted, unloadedTtft(sorted, probe));
  const rates = sorted.map((point) => point.throughput.output_tokens_per_s.value);
  if (sorted.length < 2 || rates.some((rate) => rate === null)) {
    const queue = firstQueue(sorted, probe);
    if (queue) return queue;
    const why =
      sorted.length > 0 && sorted.every(({ requests }) => requests.ok === 0)
        ? 'no request was answered'
        : sorted.length < 2
          ? 'one load was tried'
          : 'not every load has an output rate';
    return { execution_id: null, text: `The saturation point is not known: ${why}.` };
  }
  const knee = sorted.findIndex((point, index) =>
    sorted.slice(index + 1).every((higher, next) => {
      const doublings = Math.log2(loadLevel(higher) / loadLevel(point));
      return rates[index + 1 + next]! < rates[index]! * (1 + gainPerDoubling) ** doublings;
    }),
  );
  const point = sorted[knee]!;
  if (knee === sorted.length - 1) {
    const queue = queueing(point, unloadedTtft(sorted, probe));
    const waits = queue?.queues
      ? `, but ${formatPercent(queue.share)} of a request's time there is extra wait for its first token`
      : '';
    return {
      execution_id: null,
      text: `Not saturated: ${loadLabel(point.load)} still gave more throughput than the previous load${waits}.`,
    };
  }
  const limit = isClientBusy(point) ? ' The client was the limit there, not the server.' : '';
  return {
    execution_id: point.execution_id,
    text: `Throughput saturates at ${loadLabel(point.load)} (${formatQuantity(rates[knee]!, 'tok/s')} of output): doubling the load adds less than 10 % throughput, only queueing.${limit}`,
  };
}

/** A client that is late but idle adds to latencies and does not limit throughput. */
const isClientBusy = ({ client }: ServingPoint): boolean =>
  client.bound && client.event_loop_utilization > maxEventLoopUtilization;

/** The lowest load at which requests mostly queue; null if there is none. */
function firstQueue(
  sorted: readonly ServingPoint[],
  probe: LoadPlan['probe'],
): ServingResult['saturation'] | null {
  const unloaded = unloadedTtft(sorted, probe);
  for (const point of sorted) {
    const queue = queueing(point, unloaded);
    if (queue?.queues)
      return {
        execution_id: point.execution_id,
        text: `Throughput is saturated at ${loadLabel(point.load)} or below: ${formatPercent(queue.share)} of a request's time is extra wait for its first token.`,
      };
  }
  return null;
}

function fallsBehind(
  sorted: readonly ServingPoint[],
  unloaded: ReturnType<typeof unloadedTtft>,
): ServingResult['saturation'] {
  const behind = sorted.find((point) => {
    const { requests_per_s: done, offered_requests_per_s: offered } = point.throughput;
    const { e2e } = point.latency;
    if (done.value === null || offered.value === null || !('mean' in e2e)) return false;
    // The last answer ends after the last arrival: this is not a backlog, but its wait for other requests is.
    const waitMs = queueing(point, unloaded)?.wait_ms ?? 0;
    const aloneMs = Math.max(0, e2e.mean - waitMs);
    const completed = (done.value * point.seconds) / Math.max(1e-9, point.seconds - aloneMs / 1000);
    return completed < offered.value * minCompletedShare;
  });
  if (!behind) {
    const keepsUp = `Not saturated: the server keeps up with ${sorted.length === 1 ? 'this load' : 'every tested load'}`;
    const [queue] = sorted.flatMap((point) => {
      const found = queueing(point, unloaded);
      return found?.queues
        ? [`${formatPercent(found.share)} of a request's time at ${loadLabel(point.load)}`]
        : [];
    });
    const text =
      queue === undefined
        ? `${keepsUp}.`
        : `${keepsUp}, but requests queue: waiting for the first token takes ${queue}.`;
    return { execution_id: null, text };
  }
  const limit = isClientBusy(behind) ? ' The client was also a limit there.' : '';
  const rate = (id: 'offered_requests_per_s' | 'requests_per_s'): string =>
    formatQuantity(behind.throughput[id].value!, 'req/s');
  return {
    execution_id: behind.execution_id,
    text: `The server falls behind at ${loadLabel(behind.load)}: ${rate('offered_requests_per_s')} arrive, ${rate('requests_per_s')} complete, and the queue grows.${limit}`,
  };
}

export function bestUnderSlo(
  points: readonly ServingPoint[],
  slo: Slo | null,
): ServingResult['best_under_slo'] {
  if (slo === null) return null;
  const targets = sloLabel(slo);
  const met = points.filter((point) => point.goodput.meets_slo === true);
  const best = met.reduce<ServingPoint | null>(
    (high, point) => (high === null || loadLevel(point) > loadLevel(high) ? point : high),
    null,
  );
  if (best === null) return { execution_id: null, text: `No load met ${targets}.` };
  const above = points.some(
    (point) => loadLevel(point) > loadLevel(best) && point.goodput.meets_slo === false,
  );
  return {
    execution_id: best.execution_id,
    text: above
      ? `${capitalize(loadLabel(best.load))} is the highest load with ${targets}.`
      : `${capitalize(loadLabel(best.load))}, the highest tested load, has ${targets}.`,
  };
}

/** Issues that make a conclusion unreliable: once each, with the loads that have it. */
export function servingIssues(points: readonly ServingPoint[], { prompts, probe }: LoadPlan): Issue[] {
  const issues = issuesAt(
    points.flatMap((point) => pointIssues(point).map((issue) => ({ issue, scope: loadLabel(point.load) }))),
  );
  if (prompts.seed_used_before) {
    const cacheText = probe?.caches_prefixes === false ? '' : ' Its prefix cache may contain these prompts.';
    issues.push({
      code: 'seed_repeated',
      severity: probe?.caches_prefixes === false ? 'info' : 'warning',
      text: `Seed ${prompts.seed} was sent to this server before.${cacheText} Omit --seed for fresh prompts.`,
    });
  }
  return issues;
}

function pointIssues({ requests, tokens, client, server }: ServingPoint): Issue[] {
  const issues: Issue[] = [];
  const add = (code: IssueCode, severity: Issue['severity'], text: ReturnType<typeof sentence>) =>
    issues.push({ code, severity, ...text });
  if (requests.measured > 0 && requests.ok === 0)
    add('all_failed', 'error', sentence`Every request failed: there are no latencies.`);
  else if (requests.failed > 0)
    add(
      'requests_failed',
      'warning',
      sentence`${requests.failed} of ${requests.measured} requests failed; latencies exclude them.`,
    );
  if (requests.cancelled > 0)
    add(
      'requests_cancelled',
      'warning',
      sentence`Requests stopped by Ctrl-C or a signal, which are left out: ${requests.cancelled}.`,
    );
  // Without latencies the client limits none.
  if (client.bound && requests.ok > 0) {
    const lateMs = Math.max(client.event_loop_delay_p99_ms, client.send_lag_p99_ms ?? 0);
    add(
      'client_bound',
      'warning',
      sentence`Latencies include delays of this client: it handled requests or answers ${quantity(lateMs, 'ms')} late at p99, with its event loop ${quantity(client.event_loop_utilization, 'ratio')} busy.`,
    );
  }
  if (tokens.shorter_outputs > 0)
    add(
      'output_shorter',
      'warning',
      sentence`${tokens.shorter_outputs} of ${requests.ok} outputs were shorter than requested: the server may not support ignore_eos.`,
    );
  if (tokens.longer_outputs > 0)
    add(
      'output_longer',
      'warning',
      sentence`${tokens.longer_outputs} of ${requests.ok} outputs were longer than max_tokens.`,
    );
  if (tokens.chunks_not_tokens > 0)
    add(
      'chunks_not_tokens',
      'info',
      sentence`Chunks are not tokens in ${tokens.chunks_not_tokens} of ${requests.ok} requests: TPOT counts tokens, ITL is split evenly or left out.`,
    );
  const { tokenizer_difference: tokenizerDifference, cached_share: cached } = tokens;
  if (tokenizerDifference.value !== null && Math.abs(tokenizerDifference.value) >= 0.5)
    add(
      'token_counts_differ',
      'info',
      sentence`The local tokenizer counts ${quantity(Math.abs(tokenizerDifference.value), 'tokens')} ${tokenizerDifference.value > 0 ? 'more' : 'fewer'} per output than usage.`,
    );
  const hits = cached.value ?? server.prefix_cache_hit_ratio.value;
  if (hits !== null && hits > 0.05)
    add(
      'prefix_cache_carry_over',
      'warning',
      sentence`${quantity(hits, 'ratio')} of the prompt tokens came from the server's prefix cache although prompts are fresh: TTFT and throughput look too good.`,
    );
  return issues;
}
