import { afterAll, beforeAll, expect, test } from 'vitest';
import { monotonicNs } from '../model/clock.js';
import type { PlannedRequest } from './load-shape.js';
import { type PointPlan, runPoint } from './run-point.js';
import type { LoadTarget } from './target.js';
import { selfSigned } from './test-certificate.js';
import { abortAfter, startProgrammedServer, type ProgrammedServer, testTarget } from './test-server.js';
import { tokenTimes } from './token-times.js';

let server: ProgrammedServer;
beforeAll(async () => {
  server = await startProgrammedServer();
});
afterAll(() => server.stop());

function plannedRequests(
  count: number,
  outputTokens = 8,
  due: (index: number) => number | null = () => null,
) {
  return Array.from({ length: count }, (_, index): PlannedRequest => ({
    index,
    prompt: `prompt ${index} of the test`,
    input_tokens: null,
    output_tokens: outputTokens,
    warmup: false,
    due_ns: due(index),
  }));
}

function run(target: LoadTarget, change: Partial<PointPlan>, signal = new AbortController().signal) {
  const plan: PointPlan = {
    target,
    requests: plannedRequests(1),
    concurrency: 1,
    loop: 'closed',
    ramp_s: 0,
    seconds: Number.POSITIVE_INFINITY,
    begin_ns: monotonicNs(),
    ...change,
  };
  return runPoint(plan, { signal });
}

test('stamps every chunk after the server wrote it', async () => {
  const target = testTarget(server, { first_ms: 40, gap_ms: 5 });
  const { exchanges } = await run(target, { requests: plannedRequests(6, 10), concurrency: 3 });
  const log = await server.readLog();
  expect(exchanges.filter(({ status }) => status === 'ok')).toHaveLength(6);
  for (const exchange of exchanges) {
    const truth = log.find(({ prompt }) => prompt === `prompt ${exchange.index} of the test`)!;
    expect(exchange.chunk_ns).toHaveLength(10);
    expect(exchange.usage).toEqual({ input_tokens: 5, output_tokens: 10, cached_tokens: null });
    expect(exchange.finish_reason).toBe('length');
    expect(truth.read_ns).toBeGreaterThanOrEqual(exchange.sent_ns!);
    expectAfter(exchange.chunk_ns, truth.writes_ns);
  }
});

function expectAfter(chunks: number[], writes: number[]): void {
  expect(Math.min(...chunks.map((ns, index) => ns - writes[index]!))).toBeGreaterThanOrEqual(0);
}

test.each([
  ['unauthorized', 'http_401', 'no API key'],
  ['not_found', 'http_404', 'no such model'],
  ['busy', 'http_429', 'slow down'],
  ['broken', 'http_500', 'worker died'],
  ['cut', 'stream_cut', ''],
  ['malformed', 'malformed', '{"choices": [{"te'],
  ['error_event', 'stream_error', 'out of KV blocks'],
  ['empty', 'empty', ''],
  ['unstreamed', 'not_streamed', ''],
  ['reset', 'disconnected', ''],
  ['no_http', 'malformed', 'SSH-2.0'],
  ['null_event', 'malformed', 'null'],
  ['huge_usage', 'malformed', '1000000000000000'],
  ['negative_usage', 'malformed', '-5'],
  ['deep_error', 'stream_error', 'nested too deep'],
  ['endless', 'too_large', '8.13 MiB'],
  ['endless_event', 'too_large', 'MiB'],
])('counts %s as %s', async (fault, status, text) => {
  const { exchanges } = await run(testTarget(server, { fault }), {});
  expect(exchanges).toHaveLength(1);
  expect(exchanges[0]!.status).toBe(status);
  expect(exchanges[0]!.error).toContain(text);
});

test('a failed request keeps what arrived before the failure', async () => {
  const recordsOf = async (fault: string, timeoutMs = 5000) => {
    const target = { ...testTarget(server, { fault }), timeoutMs };
    const [exchange] = (await run(target, { requests: plannedRequests(1, 8) })).exchanges;
    return [exchange!.status, exchange!.chunk_ns.length];
  };
  expect(await recordsOf('cut')).toEqual(['stream_cut', 4]);
  // The server stops in the middle and keeps the connection open.
  expect(await recordsOf('stall', 2000)).toEqual(['timeout', 4]);
  expect(await recordsOf('error_event')).toEqual(['stream_error', 8]);
});

test('reads the full answer of a server that ignores max_tokens, and keeps its token count', async () => {
  const [exchange] = (await run(testTarget(server, { fault: 'ignores_max' }), {})).exchanges;
  expect(exchange).toMatchObject({ status: 'ok', requested_output_tokens: 8, usage: { output_tokens: 24 } });
  expect(exchange!.chunk_ns).toHaveLength(24);
});

test('a hanging request ends at its time limit, also if its body is never read', async () => {
  const target = { ...testTarget(server, { fault: 'hang' }), timeoutMs: 300 };
  const hung = await run(target, {});
  expect(hung.exchanges[0]).toMatchObject({ status: 'timeout', first_byte_ns: null });
  // More than the buffers of both sockets.
  const [request] = plannedRequests(1);
  const unread = await run(
    { ...target, headers: { 'x-fault': 'slow_read' } },
    { requests: [{ ...request!, prompt: 'word '.repeat(4_000_000) }] },
  );
  expect(unread.exchanges[0]).toMatchObject({ status: 'timeout', first_byte_ns: null });
});

test('no connection: closed port, unknown host', async () => {
  for (const baseUrl of ['http://127.0.0.1:1/v1', 'http://no-such-host.invalid/v1']) {
    const down = await run({ ...testTarget(server), baseUrl }, {});
    expect(down.exchanges[0]).toMatchObject({ status: 'connect', sent_ns: null, chunk_ns: [] });
    expect(down.exchanges[0]!.error).toMatch(/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/);
  }
});

test('reuses connections, except those that the server closed', async () => {
  const connections = async () =>
    Number(
      /^programmed_connections_total (\d+)/m.exec(await (await fetch(`${server.url}/metrics`)).text())![1],
    );
  const opened = async (fault: string | null) => {
    const before = await connections();
    const { exchanges } = await run(testTarget(server, { fault }), {
      requests: plannedRequests(12),
      concurrency: 3,
    });
    expect(exchanges.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 'ok'));
    return (await connections()) - before;
  };
  // The test's own fetch may open one more.
  expect(await opened(null)).toBeLessThanOrEqual(4);
  expect(await opened('close_after')).toBeGreaterThanOrEqual(12);
});

test('TLS: an untrusted certificate, a server without TLS, a trusted certificate', async () => {
  const secure = await startProgrammedServer(selfSigned());
  try {
    const untrusted = await run(testTarget(secure), {});
    expect(untrusted.exchanges[0]).toMatchObject({ status: 'tls', sent_ns: null });
    expect(untrusted.exchanges[0]!.error).toMatch(/self.signed/i);
    const plain = { ...testTarget(server), baseUrl: `${server.url.replace('http:', 'https:')}/v1` };
    expect((await run(plain, {})).exchanges[0]).toMatchObject({ status: 'tls' });
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    const { exchanges } = await run(testTarget(secure), { requests: plannedRequests(6, 20), concurrency: 2 });
    for (const exchange of exchanges) expect([exchange.status, exchange.chunk_ns.length]).toEqual(['ok', 20]);
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    secure.stop();
  }
});

test('stopping keeps the finished requests and reports the stop', async () => {
  const controller = new AbortController();
  const aborted = abortAfter(server, 10, controller);
  const target = testTarget(server, { first_ms: 5, gap_ms: 20 });
  const { exchanges } = await run(target, { requests: plannedRequests(10, 100) }, controller.signal);
  await aborted;
  expect(exchanges).toHaveLength(1);
  expect(exchanges[0]!.status).toBe('cancelled');
  expect(exchanges[0]!.chunk_ns.length).toBeGreaterThan(1);
});

test('an open loop does not wait for answers; with one slot the wait counts as latency', async () => {
  const requests = plannedRequests(5, 2, (index) => index * 20e6);
  // Nothing is answered before all five arrived.
  const controller = new AbortController();
  await server.readLog();
  let arrived = 0;
  const arrivals = async () => (arrived += (await server.readLog()).length);
  const unanswered = testTarget(server, { first_ms: 600_000 });
  const [free] = await Promise.all([
    run(
      { ...unanswered, timeoutMs: 600_000 },
      { requests, loop: 'open', concurrency: null },
      controller.signal,
    ),
    expect
      .poll(arrivals, { timeout: 50_000 })
      .toBe(5)
      .finally(() => controller.abort()),
  ]);
  expect(free.exchanges.map(({ status }) => status)).toEqual(requests.map(() => 'cancelled'));
  const target = testTarget(server, { first_ms: 100, gap_ms: 1 });
  const queued = await run(target, { requests, loop: 'open', concurrency: 1 });
  for (const { exchanges } of [free, queued]) {
    expect(exchanges.map(({ scheduled_ns: ns }) => ns).sort((x, y) => x - y)).toEqual(
      requests.map(({ due_ns }) => exchanges[0]!.scheduled_ns - exchanges[0]!.index * 20e6 + due_ns!),
    );
  }
  // Arrival 4 is due at 80 ms; with one slot it is sent after four answers of 101 ms each.
  const byIndex = queued.exchanges.toSorted((x, y) => x.index - y.index);
  expectAfter(
    byIndex.slice(1).map(({ sent_ns: ns }) => ns!),
    byIndex.map(({ chunk_ns: chunks }) => chunks.at(-1)!),
  );
  const last = byIndex.at(-1)!;
  expect((last.chunk_ns[0]! - last.scheduled_ns) / 1e6).toBeGreaterThan(400);
});

test('a chat stream: the role chunk is not a token', async () => {
  await server.readLog();
  const { exchanges } = await run({ ...testTarget(server, { first_ms: 50 }), api: 'chat' }, {});
  const [exchange] = exchanges;
  const [truth] = await server.readLog();
  expect(exchange).toMatchObject({ status: 'ok', text: ' tok'.repeat(8) });
  expect(exchange!.chunk_ns).toHaveLength(8);
  expectAfter(exchange!.chunk_ns, truth!.writes_ns);
});

test('reasoning and tool-call arguments are generated text, so TTFT is at the first of them', async () => {
  const chat = (body: Record<string, unknown>) =>
    run({ ...testTarget(server, { first_ms: 5, gap_ms: 20, ...body }), api: 'chat' }, {});
  await server.readLog();
  for (const body of [{ reasoning: 4 }, { tool_call: true }]) {
    const [exchange] = (await chat(body)).exchanges;
    const [truth] = await server.readLog();
    // usage counts reasoning tokens too; with one token per chunk every gap is known.
    expect(exchange).toMatchObject({ status: 'ok', text: ' tok'.repeat(8), usage: { output_tokens: 8 } });
    const { chunk_ns: chunks, sent_ns: sent } = exchange!;
    expect(chunks).toHaveLength(8);
    expectAfter(chunks, truth!.writes_ns);
    const { ttft_ns: ttft, tpot_ns: tpot, itl_ns: itl } = tokenTimes(exchange!, null);
    expect(itl).toHaveLength(7);
    expect([ttft, tpot]).toEqual([chunks[0]! - sent!, (chunks[7]! - chunks[0]!) / 7]);
  }
});
