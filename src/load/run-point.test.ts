import { afterAll, beforeAll, expect, test } from 'vitest';
import { monotonicNs } from './clock.js';
import type { Exchange } from './exchange.js';
import type { PlannedRequest } from './load-shape.js';
import { type PointPlan, runPoint } from './run-point.js';
import type { LoadTarget } from './target.js';
import { selfSigned } from './test-certificate.js';
import { abortAfter, programmedServer, type ProgrammedServer, testTarget } from './test-server.js';
import { tokenTimes } from './token-times.js';

let server: ProgrammedServer;
beforeAll(async () => {
  server = await programmedServer();
});
afterAll(() => server.stop());

function planned(count: number, outputTokens = 8, due: (index: number) => number | null = () => null) {
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
    requests: planned(1),
    concurrency: 1,
    loop: 'closed',
    ramp_s: 0,
    seconds: Number.POSITIVE_INFINITY,
    begin_ns: monotonicNs(),
    ...change,
  };
  return runPoint(plan, { signal });
}

test('every chunk is stamped after the server wrote it, and within the time its queueing takes', async () => {
  const target = testTarget(server, { first_ms: 40, gap_ms: 5 });
  const { exchanges } = await run(target, { requests: planned(6, 10), concurrency: 3 });
  const log = await server.log();
  expect(exchanges.filter(({ status }) => status === 'ok')).toHaveLength(6);
  const late: number[] = [];
  for (const seen of exchanges) {
    const truth = log.find(({ prompt }) => prompt === `prompt ${seen.index} of the test`)!;
    expect(seen.chunk_ns).toHaveLength(10);
    expect(seen.usage).toEqual({ input_tokens: 5, output_tokens: 10, cached_tokens: null });
    expect(seen.finish_reason).toBe('length');
    expect(truth.read_ns).toBeGreaterThanOrEqual(seen.sent_ns!);
    seen.chunk_ns.forEach((at, index) => late.push(at - truth.writes_ns[index]!));
  }
  expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
  late.sort((x, y) => x - y);
  // Typically 0.1 ms; the median, because the machine that tests may be busy.
  expect(late[late.length / 2]!).toBeLessThan(5e6);
});

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
  ['endless', 'too_large', '8 MiB'],
  ['endless_event', 'too_large', 'MiB'],
])('%s is counted as %s', async (fault, status, text) => {
  const { exchanges } = await run(testTarget(server, { fault }), {});
  expect(exchanges).toHaveLength(1);
  expect(exchanges[0]!.status).toBe(status);
  expect(exchanges[0]!.error).toContain(text);
});

test('what arrived before a failure stays known', async () => {
  const kept = async (fault: string, timeout_ms = 5000) => {
    const target = { ...testTarget(server, { fault }), timeout_ms };
    const [seen] = (await run(target, { requests: planned(1, 8) })).exchanges;
    return [seen!.status, seen!.chunk_ns.length];
  };
  expect(await kept('cut')).toEqual(['stream_cut', 4]);
  // It stops in the middle and keeps the connection open.
  expect(await kept('stall', 300)).toEqual(['timeout', 4]);
  expect(await kept('error_event')).toEqual(['stream_error', 8]);
});

test('a server that ignores max_tokens is answered in full, and its own count is kept', async () => {
  const [seen] = (await run(testTarget(server, { fault: 'ignores_max' }), {})).exchanges;
  expect(seen).toMatchObject({ status: 'ok', requested_output_tokens: 8, usage: { output_tokens: 24 } });
  expect(seen!.chunk_ns).toHaveLength(24);
});

test('a request that hangs ends at its limit, also one whose body is never read', async () => {
  const target = { ...testTarget(server, { fault: 'hang' }), timeout_ms: 300 };
  const hung = await run(target, {});
  expect(hung.exchanges[0]).toMatchObject({ status: 'timeout', first_byte_ns: null });
  expect(hung.end_ns - hung.begin_ns).toBeLessThan(2e9);
  // More than the buffers of both sockets hold.
  const [request] = planned(1);
  const unread = await run(
    { ...target, headers: { 'x-fault': 'slow_read' } },
    { requests: [{ ...request!, prompt: 'word '.repeat(4_000_000) }] },
  );
  expect(unread.exchanges[0]).toMatchObject({ status: 'timeout', first_byte_ns: null });
});

test('no connection: nobody listens, no such host', async () => {
  for (const baseUrl of ['http://127.0.0.1:1/v1', 'http://no-such-host.invalid/v1']) {
    const down = await run({ ...testTarget(server), baseUrl }, {});
    expect(down.exchanges[0]).toMatchObject({ status: 'connect', sent_ns: null, chunk_ns: [] });
    expect(down.exchanges[0]!.error).toMatch(/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/);
  }
});

test('connections are used again, and one that the server closed is not', async () => {
  const connections = async () =>
    Number(
      /^programmed_connections_total (\d+)/m.exec(await (await fetch(`${server.url}/metrics`)).text())![1],
    );
  const opened = async (fault: string | null) => {
    const before = await connections();
    const { exchanges } = await run(testTarget(server, { fault }), { requests: planned(12), concurrency: 3 });
    expect(exchanges.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 'ok'));
    return (await connections()) - before;
  };
  // The test's own fetch may open one more.
  expect(await opened(null)).toBeLessThanOrEqual(4);
  expect(await opened('close_after')).toBeGreaterThanOrEqual(12);
});

test('TLS: a certificate that nobody vouches for, a server without TLS, and one that is trusted', async () => {
  const secure = await programmedServer(selfSigned());
  try {
    const untrusted = await run(testTarget(secure), {});
    expect(untrusted.exchanges[0]).toMatchObject({ status: 'tls', sent_ns: null });
    expect(untrusted.exchanges[0]!.error).toMatch(/self.signed/i);
    const plain = { ...testTarget(server), baseUrl: `${server.url.replace('http:', 'https:')}/v1` };
    expect((await run(plain, {})).exchanges[0]).toMatchObject({ status: 'tls' });
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    const { exchanges } = await run(testTarget(secure), { requests: planned(6, 20), concurrency: 2 });
    for (const seen of exchanges) expect([seen.status, seen.chunk_ns.length]).toEqual(['ok', 20]);
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    secure.stop();
  }
});

test('stopping keeps what was seen and says so', async () => {
  const controller = new AbortController();
  const aborted = abortAfter(server, 10, controller);
  const target = testTarget(server, { first_ms: 5, gap_ms: 20 });
  const { exchanges } = await run(target, { requests: planned(10, 100) }, controller.signal);
  await aborted;
  expect(exchanges).toHaveLength(1);
  expect(exchanges[0]!.status).toBe('cancelled');
  expect(exchanges[0]!.chunk_ns.length).toBeGreaterThan(1);
});

test('an open loop does not wait for answers; with one slot the wait is latency of the schedule', async () => {
  const target = testTarget(server, { first_ms: 100, gap_ms: 1 });
  const due = (index: number) => index * 20e6;
  const requests = planned(5, 2, due);
  const free = await run(target, { requests, loop: 'open', concurrency: null });
  const queued = await run(target, { requests, loop: 'open', concurrency: 1 });
  const first = (seen: Exchange) => seen.chunk_ns[0]!;
  for (const { exchanges } of [free, queued]) {
    expect(exchanges.map(({ scheduled_ns: at }) => at).sort((x, y) => x - y)).toEqual(
      requests.map(({ due_ns }) => exchanges[0]!.scheduled_ns - exchanges[0]!.index * 20e6 + due_ns!),
    );
  }
  const last = (outcome: { exchanges: Exchange[] }) => outcome.exchanges.find(({ index }) => index === 4)!;
  // Arrival 4 is due at 80 ms. Alone it has its first token 100 ms later; with one slot four requests of 101 ms go first.
  expect((first(last(free)) - last(free).scheduled_ns) / 1e6).toBeLessThan(200);
  expect((first(last(queued)) - last(queued).scheduled_ns) / 1e6).toBeGreaterThan(400);
  expect((first(last(queued)) - last(queued).sent_ns!) / 1e6).toBeLessThan(250);
});

test('a chat stream: the role chunk is no token', async () => {
  const { exchanges } = await run({ ...testTarget(server, { first_ms: 50 }), api: 'chat' }, {});
  const [seen] = exchanges;
  expect(seen).toMatchObject({ status: 'ok', text: ' tok'.repeat(8) });
  expect((seen!.chunk_ns[0]! - seen!.first_byte_ns!) / 1e6).toBeGreaterThan(20);
});

test('reasoning and arguments of tool calls are generated text: TTFT is at the first of them', async () => {
  const chat = (body: Record<string, unknown>) =>
    run({ ...testTarget(server, { first_ms: 5, gap_ms: 20, ...body }), api: 'chat' }, {});
  await server.log();
  for (const body of [{ reasoning: 4 }, { tool_call: true }]) {
    const [seen] = (await chat(body)).exchanges;
    const [truth] = await server.log();
    // usage counts reasoning tokens too: with as many chunks as tokens every gap is known.
    expect(seen).toMatchObject({ status: 'ok', text: ' tok'.repeat(8), usage: { output_tokens: 8 } });
    const { ttft_ns: ttft, tpot_ns: tpot, itl_ns: itl } = tokenTimes(seen!, null);
    expect(itl).toHaveLength(7);
    // The fifth token, the first of the content, is written 80 ms after the first.
    expect(ttft!).toBeLessThan(truth!.writes_ns[4]! - seen!.sent_ns!);
    const written = (truth!.writes_ns[7]! - truth!.writes_ns[0]!) / 7;
    expect(Math.abs(tpot! - written) / written).toBeLessThan(0.5);
  }
});
