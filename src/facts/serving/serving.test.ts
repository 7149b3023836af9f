import { expect, test } from 'vitest';
import type { LoadPlan } from '../../model/documents/serving.js';
import { bestUnderSlo, saturation, servingIssues } from './answers.js';
import { distribution } from './distribution.js';
import { meetsSlo } from '../../model/meets-slo.js';
import { servingPoint } from './point.js';
import { queueing, unloadedTtft } from './queueing.js';
import type { RequestRow } from './requests.js';
import { idleClient } from './test-client.js';

function facts(concurrency: number): LoadPlan['points'][number] {
  const closed = { kind: 'closed' as const, rate_per_s: null, ramp_s: 0, seconds: null };
  const load = { ...closed, concurrency, requests: 4, warmup_requests: 1 };
  return { execution_id: `load-${concurrency}`, load, begin_ns: 0, end_ns: 1e9, client: idleClient };
}

/**
 * A request with 4 tokens, due 5 ms before it was sent at `sent` ms, with the first token after `ttft` ms and the others
 * every `gap` ms.
 */
function row(sent: number, ttft: number, gap: number, change: Partial<RequestRow> = {}): RequestRow {
  return {
    scheduled_ns: (sent - 5) * 1e6,
    sent_ns: sent * 1e6,
    first_token_ns: (sent + ttft) * 1e6,
    end_ns: (sent + ttft + 3 * gap) * 1e6,
    ttft_ns: ttft * 1e6,
    tpot_ns: gap * 1e6,
    itl_ns: JSON.stringify([gap * 1e6, gap * 1e6, gap * 1e6]),
    itl_split: false,
    input_tokens: 10,
    output_tokens: 4,
    requested_output_tokens: 4,
    tokenizer_output_tokens: null,
    cached_tokens: null,
    status: 'ok',
    error: null,
    warmup: false,
    ...change,
  };
}

const failed: Partial<RequestRow> = {
  status: 'http_500',
  error: 'worker died',
  first_token_ns: null,
  end_ns: null,
  ttft_ns: null,
  tpot_ns: null,
  itl_ns: null,
  output_tokens: null,
};
const slo = { ttft_ms: 50, tpot_ms: 12, e2e_ms: null, share: 0.6 };

test('figures of a load by hand; warm-up and failures are not averaged in', () => {
  const rows = [
    row(0, 500, 100, { warmup: true }),
    row(100, 40, 10),
    row(200, 60, 10),
    row(300, 20, 20),
    row(400, 0, 0, failed),
  ];
  const point = servingPoint(facts(1), rows, slo, new Map());
  expect(point.requests).toMatchObject({ measured: 4, ok: 3, failed: 1, warmup: 1 });
  expect(point.requests.failures).toEqual([{ kind: 'http_500', count: 1, example: 'worker died' }]);
  expect(point.latency.ttft).toMatchObject({ n: 3, mean: 40, sd: 20, p50: 40, min: 20, max: 60, ci95: null });
  expect(point.latency.ttft_from_schedule).toMatchObject({ p50: 45 });
  // Sent before it was due.
  const early = servingPoint(facts(1), [row(100, 40, 10, { scheduled_ns: 101e6 })], slo, new Map());
  expect(early.latency.ttft_from_schedule).toMatchObject({ p50: 40 });
  expect(point.latency.tpot).toMatchObject({ p50: 10, p90: 18 });
  expect(point.latency.itl).toMatchObject({ n: 9 });
  expect(point.latency.e2e).toMatchObject({ p50: 80, max: 90 });
  // From the first send (100 ms) to the last known time (the failed request, sent at 400 ms): 0.3 s.
  expect(point.seconds).toBeCloseTo(0.3, 12);
  expect(point.throughput.output_tokens_per_s.value).toBeCloseTo(12 / 0.3, 9);
  expect(point.throughput.total_tokens_per_s.value).toBeCloseTo(42 / 0.3, 9);
  // Only the first is good. The second misses TTFT, the third TPOT, and the fourth failed.
  expect(rows.map((requestRow) => meetsSlo(requestRow, slo, false))).toEqual([
    false,
    true,
    false,
    false,
    false,
  ]);
  // In an open loop the 5 ms before sending count: 46 + 5 ms miss 50 ms.
  expect([false, true].map((open) => meetsSlo(row(0, 46, 10), slo, open))).toEqual([true, false]);
  expect(point.goodput).toMatchObject({ share: { value: 0.25, n: 4 }, meets_slo: false });
});

test('figures are missing, not 0, if all requests failed', () => {
  const point = servingPoint(facts(1), [row(0, 0, 0, failed), row(9, 0, 0, failed)], slo, new Map());
  for (const figure of Object.values(point.latency)) expect(figure).toMatchObject({ value: null });
  for (const figure of Object.values(point.throughput)) expect(figure).toMatchObject({ value: null });
  expect(point.goodput.share.value).toBe(0);
  const plan = { prompts: { seed_used_before: false }, probe: null } as unknown as LoadPlan;
  // A slow client is not the cause.
  const slow = { ...point, client: { ...point.client, bound: true } };
  expect(servingIssues([slow], plan).map(({ code, severity }) => [code, severity])).toEqual([
    ['all_failed', 'error'],
  ]);
  expect(saturation([point], null).text).toBe('The saturation point is not known: no request was answered.');
  const { input, tokenizer_difference, cached_share } = point.tokens;
  for (const figure of [input, tokenizer_difference, cached_share])
    expect(figure).toMatchObject({ reason: { text: 'no counted request was answered' } });
});

test('uncounted tokens leave rates and TPOT missing', () => {
  const withoutTokens = row(0, 20, 10, {
    output_tokens: null,
    tpot_ns: null,
    itl_ns: null,
    input_tokens: null,
  });
  const point = servingPoint(facts(1), [withoutTokens], null, new Map());
  expect(point.throughput.requests_per_s.value).toBeGreaterThan(0);
  expect(point.throughput.output_tokens_per_s).toMatchObject({ value: null });
  expect(point.latency.tpot).toMatchObject({ value: null });
  expect(point.tokens.chunks_not_tokens).toBe(1);
});

test('saturation and the highest load under an SLO, in words', () => {
  const load = (users: number, gap: number) =>
    servingPoint(
      facts(users),
      Array.from({ length: users }, (_, i) => row(i, 20, gap)),
      slo,
      new Map(),
    );
  // 16 tokens in 3 + 20 + 30 ms are 302 per second; 32 in 7 + 20 + 63 ms are 356, which is still more.
  const points = [load(4, 10), load(8, 21)];
  expect(saturation(points, null)).toMatchObject({ execution_id: null });
  // Throughput grew, so it is not saturated, even where most of a request is waiting: alone 1 ms to the first token.
  expect(saturation([load(4, 3), load(8, 3)], { ttft_ms: 1 } as never)).toMatchObject({
    execution_id: null,
    text: expect.stringMatching(
      /^Not saturated: 8 users .*, but \d+ % of a request's time there is extra wait/,
    ) as string,
  });
  const full = [load(4, 10), load(8, 10), load(16, 25)];
  const rates = full.map((point) => point.throughput.output_tokens_per_s.value!);
  expect(rates[2]!).toBeLessThan(rates[1]! * 1.05);
  expect(saturation(full, null)).toMatchObject({ execution_id: 'load-8' });
  // A late client that is idle does not limit throughput, a busy one does.
  const withClient = (event_loop_utilization: number) => ({
    ...full[1]!,
    client: { ...full[1]!.client, bound: true, event_loop_utilization },
  });
  const limitOf = (utilization: number) =>
    saturation([full[0]!, withClient(utilization), full[2]!], null).text.includes('The client was the limit');
  expect([limitOf(0.04), limitOf(0.95)]).toEqual([false, true]);
  expect(saturation([points[0]!], null).execution_id).toBeNull();
  expect(bestUnderSlo(full, slo)).toEqual({
    execution_id: 'load-8',
    text: '8 users is the highest load with TTFT ≤ 50 ms and TPOT ≤ 12 ms for at least 60 % of requests.',
  });
  expect(bestUnderSlo([full[2]!], slo)!.execution_id).toBeNull();
  const slow = { ...slo, ttft_ms: null, tpot_ms: null, e2e_ms: 10_000 };
  expect(bestUnderSlo([full[2]!], slow)!.text).toContain('end to end ≤ 10 s for at least 60 %');
});

test('an open loop that cannot keep up falls behind', () => {
  const open = (e2eGap: number) => {
    const load = { ...facts(1).load, kind: 'poisson' as const, rate_per_s: 10, concurrency: 1 };
    // Due every 100 ms. One slot takes 50 + 3 gaps per request, and the next request is sent when it is free.
    const takes = 50 + 3 * e2eGap;
    const rows = Array.from({ length: 20 }, (_, k) =>
      row(Math.max(k * 100, k * takes), 50, e2eGap, { scheduled_ns: k * 100e6 }),
    );
    return servingPoint({ ...facts(1), load }, rows, slo, new Map());
  };
  expect(open(10).throughput.offered_requests_per_s.value).toBeCloseTo(10, 9);
  expect(saturation([open(10)], null)).toMatchObject({ execution_id: null });
  // Alone the first token takes 5 ms, here 50 of 80 ms: 45 / 80.
  expect(saturation([open(10)], { ttft_ms: 5 } as never).text).toMatch(
    /^Not saturated: .* but requests queue: waiting for the first token takes 56 % /,
  );
  // Due every 100 ms, 112 ms each, all sent when due: the last of 60 waits 0.7 s for the others, which is a backlog.
  const load = { ...facts(1).load, kind: 'poisson' as const, rate_per_s: 10, concurrency: null };
  const waiting = Array.from({ length: 60 }, (_, k) =>
    row(k * 100, 50 + k * 12, 62 / 3, { scheduled_ns: k * 100e6 }),
  );
  const backlog = servingPoint({ ...facts(1), load }, waiting, slo, new Map());
  expect(saturation([backlog], { ttft_ms: 50 } as never).text).toMatch(/^The server falls behind at /);
  // 200 ms each: 5 of the 10 requests due per second.
  expect(saturation([open(50)], null).text).toContain('10.0 req/s arrive, 5.00 req/s complete');
});

test("finds prefix-cache hits from earlier loads in usage and the server's counters", () => {
  const plan = { prompts: { seed: 7, seed_used_before: true }, probe: null } as unknown as LoadPlan;
  const codes = (point: ReturnType<typeof servingPoint>) =>
    servingIssues([point], plan).map(({ code }) => code);
  const cached = servingPoint(facts(1), [row(0, 20, 10, { cached_tokens: 9 })], null, new Map());
  expect(cached.tokens.cached_share.value).toBeCloseTo(0.9, 12);
  expect(codes(cached)).toEqual(['prefix_cache_carry_over', 'seed_repeated']);
  const counters = new Map([
    ['prefix_cache_hits_total', { max: 500, grown: 80 }],
    ['prefix_cache_queries_total', { max: 900, grown: 100 }],
  ]);
  const point = servingPoint(facts(1), [row(0, 20, 10)], null, counters);
  expect(point.server.prefix_cache_hit_ratio.value).toBeCloseTo(0.8, 12);
  expect(codes(point)).toContain('prefix_cache_carry_over');
});

test('the interval is over ten consecutive batches, so a drift widens it', () => {
  // Batch means 0.5, 2.5, …, 18.5: sd of 0, 2, …, 18 is 6.0553; t(9) = 2.2622; half = 2.2622 · 6.0553 / √10 = 4.3318.
  const drifting = distribution(
    Array.from({ length: 20 }, (_, i) => i),
    'ms',
    's',
    '',
  );
  if (!('p50' in drifting)) throw new Error('no values');
  expect(drifting.mean).toBe(9.5);
  expect(drifting.ci95![0]).toBeCloseTo(9.5 - 4.3318, 3);
  expect(drifting.ci95![1]).toBeCloseTo(9.5 + 4.3318, 3);
  expect(distribution([1, 2], 'ms', 's', '')).toMatchObject({ ci95: null, p99: 1.99 });
});

/**
 * A simulated closed loop: `users` send the next request immediately, and `slots` requests run at a time, each for
 * `prefill` ms and 3 gaps of `gap` ms; `slower` scales the time of the k-th request.
 */
function closedLoop(
  users: number,
  slots: number,
  [prefill, gap]: [number, number],
  slower: (nth: number) => number = () => 1,
) {
  const freeTimes = Array<number>(slots).fill(0);
  const sendTimes = Array<number>(users).fill(0);
  const rows: RequestRow[] = [];
  for (let k = 0; k < 8 * users; k++) {
    const user = sendTimes.indexOf(Math.min(...sendTimes));
    const slot = freeTimes.indexOf(Math.min(...freeTimes));
    const startMs = Math.max(sendTimes[user]!, freeTimes[slot]!);
    const [first, step] = [prefill * slower(k), gap * slower(k)];
    rows.push(row(sendTimes[user]!, startMs - sendTimes[user]! + first, step));
    freeTimes[slot] = sendTimes[user] = startMs + first + 3 * step;
  }
  return servingPoint(facts(users), rows, null, new Map());
}

test('recognizes queueing by the share of waiting, with one, four and unlimited requests at a time', () => {
  // One at a time takes 100 + 3 · 100 ms. With N users a request waits (N − 1) · 400 ms of N · 400.
  const oneSlot = [1, 2, 4, 8].map((users) => closedLoop(users, 1, [100, 100]));
  const shares = (points: typeof oneSlot) =>
    points.map((point) => queueing(point, unloadedTtft(points, null))!.share);
  shares(oneSlot).forEach((share, index) => expect(share).toBeCloseTo(1 - 1 / 2 ** index, 1));
  expect(saturation(oneSlot, null)).toMatchObject({ execution_id: 'load-1' });
  // A machine that gets 6 % faster from load to load still serves one request at a time.
  const drifting = [1, 2, 4, 8].map((users, index) => closedLoop(users, 1, [100, 100], () => 0.94 ** index));
  expect(saturation(drifting, null)).toMatchObject({ execution_id: 'load-1' });

  const four = [1, 2, 4, 8, 16].map((users) => closedLoop(users, 4, [100, 100]));
  expect(saturation(four, null)).toMatchObject({ execution_id: 'load-4' });
  expect(four.map((point) => queueing(point, unloadedTtft(four, null))!.queues)).toEqual([
    false,
    false,
    false,
    false,
    true,
  ]);
  const many = [1, 2, 4, 8].map((users) => closedLoop(users, 8, [100, 100]));
  expect(saturation(many, null).execution_id).toBeNull();
  for (const share of shares(many)) expect(share).toBe(0);

  // A single load is compared with the probe's TTFT.
  const probe = {
    ttft_ms: 100,
    repeated_ttft_ms: 100,
    repeated_cached_tokens: null,
    caches_prefixes: false,
    usage: true,
  };
  const overloaded = [closedLoop(64, 1, [100, 100])];
  expect(saturation(overloaded, probe)).toMatchObject({ execution_id: 'load-64' });
  expect(saturation(overloaded, null).execution_id).toBeNull();
});
