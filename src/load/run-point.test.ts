import { afterAll, beforeAll, expect, test } from 'vitest';
import { monotonicNs } from './clock.js';
import type { Exchange } from './exchange.js';
import type { PlannedRequest } from './load-shape.js';
import { type PointPlan, runPoint } from './run-point.js';
import type { LoadTarget } from './target.js';
import { programmedServer, type ProgrammedServer, testTarget } from './test-server.js';

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
  ['busy', 'http_429', 'slow down'],
  ['broken', 'http_500', 'worker died'],
  ['cut', 'stream_cut', ''],
  ['malformed', 'malformed', '{"choices": [{"te'],
  ['error_event', 'stream_error', 'out of KV blocks'],
  ['empty', 'empty', ''],
  ['unstreamed', 'not_streamed', ''],
  ['reset', 'disconnected', ''],
])('%s is counted as %s', async (fault, status, text) => {
  const { exchanges } = await run(testTarget(server, { fault }), {});
  expect(exchanges).toHaveLength(1);
  expect(exchanges[0]!.status).toBe(status);
  expect(exchanges[0]!.error).toContain(text);
});

test('what arrived before a cut stays known', async () => {
  const { exchanges } = await run(testTarget(server, { fault: 'cut' }), { requests: planned(1, 8) });
  expect(exchanges[0]!.chunk_ns).toHaveLength(4);
});

test('a request that hangs ends at its limit; a server that is down is no connection', async () => {
  const hung = await run({ ...testTarget(server, { fault: 'hang' }), timeout_ms: 300 }, {});
  expect(hung.exchanges[0]).toMatchObject({ status: 'timeout' });
  expect(hung.end_ns - hung.begin_ns).toBeLessThan(2e9);
  const down = await run({ ...testTarget(server), baseUrl: 'http://127.0.0.1:1/v1' }, {});
  expect(down.exchanges[0]).toMatchObject({ status: 'connect', sent_ns: null });
});

test('stopping keeps what was seen and says so', async () => {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 150);
  const target = testTarget(server, { first_ms: 5, gap_ms: 20 });
  const { exchanges } = await run(target, { requests: planned(10, 100) }, controller.signal);
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
