import { profiledDecode } from '../../verify/test-verify.js';
import { afterAll, expect, test } from 'vitest';
import { benchPoint } from '../../../model/bench.js';
import type { StageWaterfall } from '../../../model/documents/explain.js';
import type { LoadPlan } from '../../../model/documents/serving.js';
import { figure } from '../../../model/figure.js';
import type { Session } from '../../../session/open.js';
import type { SessionDatabase } from '../../../session/query.js';
import { testHome } from '../../../session/test-folder.js';
import { gpuWorkload, planOf } from '../../../facts/bench/test-bench.js';
import { gpuSession, rows as benchRows, throughputSession } from '../../../facts/bench/test-bench-session.js';
import { repetitions, sessionOf } from '../../../facts/test-session.js';
import { findingContext } from '../findings.js';
import { rankFindings } from '../ranking.js';
import { expectEvidence } from '../test-evidence.js';
import { allFired } from '../test-steps.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { answersNotAsRequested } from './answers-not-as-requested.js';
import { benchmarkFlags } from './benchmark-flags.js';
import { clientBound } from './client-bound.js';
import { fewRepeats } from './few-repeats.js';
import { prefixCacheArtifact } from './prefix-cache-artifact.js';
import { requestsQueue } from './requests-queue.js';
import { profilerOverhead } from './profiler-overhead.js';
import { idleClient } from '../../../facts/serving/test-client.js';

const home = testHome();
const open: SessionDatabase[] = [];
afterAll(async () => {
  for (const database of open) await database.close();
});

async function outcome(
  rule: Rule,
  session: Session,
  waterfalls: StageWaterfall[] = [],
): Promise<RuleOutcome> {
  const database = await session.connect();
  open.push(database);
  const result = await rule.find(await findingContext(session, database, null, waterfalls));
  if (result.outcome === 'fired') await expectEvidence(session, allFired(result));
  return result;
}

/** A benchmark of one point, with decode step times per launch, ms. */
function bench(decode: number[]): Promise<Session> {
  const point = benchPoint(['latency'], 2, 4, 3);
  const rows = repetitions(
    decode.flatMap((ms, launch) =>
      [0, 1].map((i) => ({
        samplingMs: [1, 0.5, 0.5],
        loopMs: 0.25,
        inputLen: 4,
        point: point.point,
        pid: 100 + launch,
        launch,
        iteration: 2 * launch + i,
        startMs: 1000 * launch + 100 * i,
        prefillMs: 10,
        decodeMs: [ms, ms],
      })),
    ),
  );
  return sessionOf(home, rows, {
    kind: 'bench',
    workload: gpuWorkload(),
    roofline: null,
    artifacts: { 'bench-plan': planOf([point]) },
  });
}

test('reports few repeats if launches of a benchmark differ, but not if they agree', async () => {
  const [finding] = allFired(await outcome(fewRepeats, await bench([4, 8])));
  expect(finding!.title).toMatch(
    /^High variance at batch 2, 4 in \+ 3 out: end-to-end means of launches differ: standard deviation \d+ %/,
  );
  expect(await outcome(fewRepeats, await bench([4, 4]))).toMatchObject({ outcome: 'not_fired' });
});

const stage = (change: Partial<StageWaterfall>): StageWaterfall =>
  profiledDecode({
    measured_ms: figure(10, 'ms', 'measured', { n: 8, ci95: [9.5, 10.5] }),
    median_ms: 10,
    ...change,
  });

/** One decode step of 10 ms under the profiler and one of 7 ms without. */
const steps = ['profiled', 'clean'].map((execution_id, i) => ({
  execution_id,
  stage_id: i,
  kind: 'decode',
  start_ns: 0,
  end_ns: (10 - 3 * i) * 1e6,
  warmup: false,
}));

test('reports few repeats of a timeline for one instance or a wide interval', async () => {
  const session = await sessionOf(home, { stages: steps }, { kind: 'run', workload: null, roofline: null });
  const outcomeWith = (change: Partial<StageWaterfall>) => outcome(fewRepeats, session, [stage(change)]);
  expect(await outcomeWith({})).toMatchObject({ outcome: 'not_fired' });
  // The number of values behind the compared time counts, not that of profiled steps.
  expect(await outcomeWith({ instances: 1 })).toMatchObject({ outcome: 'not_fired' });
  expect(allFired(await outcomeWith({ measured_ms: figure(10, 'ms', 'W', { n: 1 }) }))[0]!.title).toBe(
    'Too few repeats: one decode step was measured',
  );
  expect(
    allFired(await outcomeWith({ measured_ms: figure(10, 'ms', 'measured', { n: 8, ci95: [7, 13] }) }))[0]!
      .title,
  ).toContain('± 30 %');
  // Loading happens only once.
  expect(await outcomeWith({ kind: 'load', instances: 1 })).toMatchObject({ outcome: 'not_fired' });
  expect(await outcome(fewRepeats, session)).toMatchObject({ outcome: 'not_applicable' });
});

test('reports profiler overhead from a quarter of the clean time on', async () => {
  const session = await sessionOf(home, { stages: steps }, { kind: 'run', workload: null, roofline: null });
  const overheadOf = (clean: number) =>
    outcome(profilerOverhead, session, [stage({ clean_ms: figure(clean, 'ms', 'clean') })]);
  const [finding] = allFired(await overheadOf(7));
  expect(finding).toMatchObject({ stage: 'decode', gain: null, at_stake_ms: null });
  expect(finding!.title).toContain('(+43 %)');
  // Without a GPU timeline there are no kernel times to trust, and nothing for nsys to record.
  expect(finding!.cause).not.toContain('kernel');
  expect(finding!.change).toMatchObject({ kind: 'capture', example: null });
  expect(finding!.evidence.map(({ rows }) => rows.map(({ mean_ms: ms }) => ms))).toEqual([[7], [10]]);
  // One step has no average.
  for (const { rows, text } of finding!.evidence)
    expect(text.endsWith('on average')).toBe(rows[0]!['instances'] !== 1);
  expect(await overheadOf(9)).toMatchObject({ outcome: 'not_fired' });
  expect(await outcome(profilerOverhead, session, [stage({})])).toMatchObject({ outcome: 'not_applicable' });
});

test('reports a benchmark with throughput that does not scale', async () => {
  const { session } = await throughputSession(home, { growth: 1 });
  const [finding] = allFired(await outcome(benchmarkFlags, session));
  expect(finding!.title).toMatch(
    /^Throughput does not scale: batch 4 gives (no|hardly) more tokens\/s than batch 2: /,
  );
  expect(await outcome(benchmarkFlags, await bench([4, 4]))).toMatchObject({ outcome: 'not_fired' });
});

test('one idle thread cannot be replaced by fewer', async () => {
  const all = benchRows();
  const telemetry = all.telemetry!.map((row) => (row.metric === 'cores_busy' ? { ...row, value: 0.4 } : row));
  for (const [threads, example] of [
    [1, null],
    [2, '--threads <fewer>'],
  ] as const) {
    const workload = { ...gpuWorkload(), device: 'cpu', threads };
    const found = allFired(
      await outcome(benchmarkFlags, await gpuSession({ workload }, { ...all, telemetry })),
    );
    const draft = found.find(({ title }) => title.startsWith('Low utilization'))!;
    expect(draft.change.example).toBe(example);
  }
});

test('a point that ran out of memory is a severe finding that states its reason once', async () => {
  const found = allFired(await outcome(benchmarkFlags, await gpuSession()));
  const draft = found.find(({ title }) => title.startsWith('Out of memory'))!;
  expect(draft.title).toBe(
    'Out of memory: batch 8, 4 in + 3 out does not fit: CUDA out of memory; largest measured 4',
  );
  expect(draft.evidence[0]!.text).toBe('flag out_of_memory');
  expect(rankFindings([{ rule: benchmarkFlags, draft }], [])[0]).toMatchObject({ severity: 'high' });
});

function loadTest(
  bound: boolean,
  cached: number,
  status = 'ok',
  { slo = null, ttftMs = 50 }: { slo?: LoadPlan['slo']; ttftMs?: number } = {},
): Promise<Session> {
  const plan: LoadPlan = {
    target: { url: 'http://h', api: 'completions', model: 'm', server: null, metrics_url: null },
    prompts: { seed: 1, seed_used_before: false, input_len: 100, output_len: 4, tokenizer: null },
    slo,
    probe: {
      ttft_ms: 40,
      repeated_ttft_ms: 40,
      repeated_cached_tokens: null,
      caches_prefixes: false,
      usage: true,
    },
    points: [
      {
        execution_id: 'load',
        load: {
          kind: 'closed',
          concurrency: 2,
          rate_per_s: null,
          requests: 2,
          warmup_requests: 0,
          ramp_s: 0,
          seconds: null,
        },
        begin_ns: 0,
        end_ns: 1e9,
        client: {
          ...idleClient,
          bound,
          ...(bound && { event_loop_utilization: 0.95, event_loop_delay_p99_ms: 8, reasons: ['95 %'] }),
        },
      },
    ],
  };
  const requests = [0, 1].map((i) => ({
    execution_id: 'load',
    request_id: String(i),
    scheduled_ns: i * 1e6,
    sent_ns: i * 1e6,
    first_token_ns: ttftMs * 1e6,
    end_ns: (ttftMs + 40) * 1e6,
    ttft_ns: ttftMs * 1e6,
    tpot_ns: 13e6,
    input_tokens: 100,
    output_tokens: 4,
    cached_tokens: cached,
    status: i === 0 ? 'ok' : status,
    warmup: false,
  }));
  return sessionOf(
    home,
    { requests },
    { kind: 'bench', workload: null, roofline: null, artifacts: { 'load-plan': plan } },
  );
}

test('issues of a load test become findings with the same text', async () => {
  const doubtful = await loadTest(true, 60, 'http_500');
  const [client] = allFired(await outcome(clientBound, doubtful));
  expect(client!.title).toContain(
    'it handled requests or answers 8.00 ms late at p99, with its event loop 95 % busy',
  );
  expect(client!.evidence.map(({ text }) => text)).toEqual(['how late the requests of each load were sent']);
  expect(allFired(await outcome(prefixCacheArtifact, doubtful))[0]!.title).toContain(
    '60 % of the prompt tokens',
  );
  expect(allFired(await outcome(answersNotAsRequested, doubtful))[0]!.title).toContain(
    '1 of 2 requests failed',
  );
  const clean = await loadTest(false, 0);
  for (const rule of [clientBound, prefixCacheArtifact, answersNotAsRequested])
    expect(await outcome(rule, clean)).toMatchObject({ outcome: 'not_fired' });
  const none = await sessionOf(home, {}, { kind: 'run', workload: null, roofline: null });
  for (const rule of [clientBound, answersNotAsRequested, benchmarkFlags])
    expect(await outcome(rule, none)).toMatchObject({ outcome: 'not_applicable' });
});

test('reports an overloaded server by queue time of requests, or if no load met the SLO', async () => {
  // 30 s to the first token, where a single request takes 40 ms; sent at 0 and 1 ms.
  const overloaded = await loadTest(false, 0, 'ok', { ttftMs: 30_000 });
  const [queue] = allFired(await outcome(requestsQueue, overloaded));
  expect(queue!.at_stake_ms).toBe(29_960);
  expect(queue!.evidence[0]!.text).toMatch(/; one request before the loads: TTFT 40\.0.ms$/);
  expect(queue!.share).toBeCloseTo(29_960 / 30_039.5, 9);
  // A late client may be the reason.
  expect(queue!.confidence).toBe('high');
  const [lateClient] = allFired(
    await outcome(requestsQueue, await loadTest(true, 0, 'ok', { ttftMs: 30_000 })),
  );
  expect(lateClient!.confidence).toBe('low');
  expect(lateClient!.cause).toContain('part of the wait may be its own');
  // By the server's own metrics less than half of that time was in its queue.
  const withQueue = (ms: number) =>
    outcome(requestsQueue, overloaded, [
      stage({
        kind: 'request',
        execution_id: 'load',
        bars: [{ ...stage({}).bars[0]!, id: 'host.queue', ms }],
      }),
    ]);
  expect(await withQueue(29_000)).toMatchObject({ outcome: 'fired' });
  expect(await withQueue(40)).toMatchObject({
    outcome: 'not_fired',
    why: "At 2 users a request waits 30.0 s longer for its first token than alone, but only 40.0 ms in the server's queue.",
  });
  const slo = { ttft_ms: null, tpot_ms: 10, e2e_ms: null, share: 0.9 };
  const [missed] = allFired(await outcome(requestsQueue, await loadTest(false, 0, 'ok', { slo })));
  expect(missed).toMatchObject({ share: 1, at_stake_ms: 3 });
  expect(await outcome(requestsQueue, await loadTest(false, 0))).toMatchObject({ outcome: 'not_fired' });
});
