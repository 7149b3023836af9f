import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startProgrammedServer, type ProgrammedServer } from '../../src/load/test-server.js';
import { servingDocumentSchema, type ServingResult } from '../../src/model/documents/serving.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  listSessions,
  startCli,
  type CliResult,
} from './run-cli.js';

const setup = createSetup();
let server: ProgrammedServer;
beforeAll(async () => {
  server = await startProgrammedServer();
});
afterAll(() => server.stop());

const lengths = ['--input-len', '40', '--output-len', '10'];
const body = (fields: object) => ['--extra-body', JSON.stringify(fields)];

/** Expects the exit code, and reads the document of a load. */
function parseLoad(
  { status, stdout, stderr }: CliResult,
  exitCode = 0,
): { data: ServingResult; codes: string[] } {
  expect(status, stderr).toBe(exitCode);
  const { data, issues } = servingDocumentSchema.parse(JSON.parse(stdout));
  return { data, codes: issues.map(({ code }) => code) };
}
function run(url: string, ...args: string[]): CliResult {
  return inferscope(setup, ['bench', 'serve', url, ...lengths, ...args, '--json', '--quiet']);
}

test.each([
  ['cut', 'stream_cut'],
  ['error_event', 'stream_error'],
  ['broken', 'http_500'],
  ['reset', 'disconnected'],
  ['empty', 'empty'],
  ['stall', 'timeout'],
])(
  'if every third request has the fault "%s", failures are counted by kind and the other requests measured',
  (fault, kind) => {
    const options = ['--no-probe', '--requests', '9', '--warmup-requests', '0', '--timeout', '1500ms'];
    const faulty = body({ fault, fault_every: 3 });
    const { data, codes } = parseLoad(run(server.url, ...options, '--concurrency', '3', ...faulty));
    const [point] = data.points;
    expect(point!.requests).toMatchObject({ measured: 9, ok: 6, failed: 3, cancelled: 0 });
    expect(point!.requests.failures).toMatchObject([{ kind, count: 3 }]);
    expect(codes).toContain('requests_failed');
    // The statistics are of the six successful requests, because a failed one would make the minimum zero. There is no stricter check, because a
    // busy machine reads several pieces of a stream at once.
    for (const spread of [point!.latency.ttft, point!.latency.tpot, point!.latency.e2e]) {
      expect(spread).toMatchObject({ n: 6 });
      expect('min' in spread && spread.min).toBeGreaterThan(0);
    }
    expect(point!.tokens.output).toMatchObject({ value: 10, n: 6 });
  },
);

test('a server that rejects every request is reported before any load', () => {
  const runWithFault = (fault: string) => run(server.url, ...body({ fault }));
  const fixes = {
    unauthorized: ['HTTP 401: no API key', 'API_KEY'],
    not_found: ['HTTP 404: no such model', '--model'],
    busy: ['HTTP 429: slow down', 'limit'],
    broken: ['HTTP 500: worker died', 'log'],
  };
  for (const [fault, [why, fix]] of Object.entries(fixes)) {
    const failure = expectFailure(runWithFault(fault), 4, 'E_SERVER_RESPONSE');
    expect(failure.why).toContain(why);
    expect(failure.fix).toContain(fix);
  }
  const https = run(server.url.replace('http:', 'https:'), '--model', 'm');
  expect(expectFailure(https, 4, 'E_SERVER_UNREACHABLE').fix).toContain('http://');
  expectFailure(run(server.url, '--metrics-url', `${server.url}/nothing`), 4, 'E_SERVER_RESPONSE');
  expectFailure(run(server.url, '--timeout', '400ms', ...body({ fault: 'hang' })), 4, 'E_SERVER_UNREACHABLE');
  // No tick for a server that the probe has not accepted.
  const shown = inferscope(setup, [
    'bench',
    'serve',
    server.url,
    ...lengths,
    ...body({ fault: 'not_found' }),
  ]);
  expect(shown.stderr).toContain('HTTP 404');
  expect(shown.stderr).not.toContain('✓');
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('outputs longer than requested are reported, with their real length', () => {
  const longer = run(server.url, '--requests', '4', ...body({ fault: 'ignores_max' }));
  const { data, codes } = parseLoad(longer);
  expect(data.points[0]!.tokens).toMatchObject({ output: { value: 30 }, longer_outputs: 4 });
  expect(codes).toContain('output_longer');
});

test('without a server and without the probe: a session of failures, no latencies, exit code 4', () => {
  const down = run('http://127.0.0.1:1', '--model', 'm', '--no-probe', '--requests', '5');
  const { data, codes } = parseLoad(down, 4);
  expect(data.points[0]!.requests.failures).toMatchObject([{ kind: 'connect', count: 5 }]);
  for (const spread of Object.values(data.points[0]!.latency)) expect(spread).toMatchObject({ value: null });
  expect(codes).toContain('all_failed');
});

test('the answers of a server that dies under load are saved', async () => {
  const dying = await startProgrammedServer();
  const args = ['bench', 'serve', dying.url, ...lengths, '--no-probe', '--concurrency', '4'];
  const more = ['--requests', '200', '--timeout', '5s', '--json', '--quiet'];
  const { exit } = startCli(setup, [...args, ...more, ...body({ gap_ms: 10 })]);
  while ((await dying.readTokenCount()) < 200) await sleep(20);
  dying.stop();
  const { data, codes } = parseLoad(await exit);
  const { ok, failed, failures } = data.points[0]!.requests;
  expect(ok).toBeGreaterThan(5);
  expect(ok + failed).toBe(200);
  expect(failures.map(({ kind }) => kind)).toContain('connect');
  expect(data.points[0]!.latency.ttft).toMatchObject({ n: ok });
  expect(codes).toContain('requests_failed');
});

test('Ctrl-C saves what was measured and says so', async () => {
  const before = await server.readTokenCount();
  const args = ['bench', 'serve', server.url, ...lengths, '--concurrency', '4', '--requests', '4000'];
  const { child, exit } = startCli(setup, [...args, '--json', ...body({ gap_ms: 10 })]);
  while ((await server.readTokenCount()) < before + 800) await sleep(20);
  child.kill('SIGINT');
  const result = await exit;
  const { data, codes } = parseLoad(result, 130);
  expect(result.stderr).toContain('interrupted: session');
  const { ok, failed, cancelled } = data.points[0]!.requests;
  expect([ok > 10, failed, cancelled]).toEqual([true, 0, 4]);
  expect(data.points[0]!.latency.ttft).toMatchObject({ n: ok });
  expect(codes).toContain('requests_cancelled');
  expect(listSessions(setup).find(({ id }) => id === data.session.id)).toMatchObject({
    status: 'interrupted',
  });
});

test('prefix-cache hits are read from usage and counters, or detected by time if neither reports them', () => {
  const seeded = (seed: string, ...fields: object[]) =>
    parseLoad(
      run(server.url, '--requests', '6', '--seed', seed, ...body(Object.assign({ first_ms: 60 }, ...fields))),
    );
  const caching = { prefix_cache: true };
  const fresh = seeded('11', caching);
  expect(fresh.data.probe).toMatchObject({ caches_prefixes: true, repeated_cached_tokens: 32 });
  expect(fresh.data.points[0]!.tokens.cached_share.value).toBe(0);
  expect(fresh.codes).not.toContain('prefix_cache_carry_over');
  // The same prompts again: 2 of their 2.5 blocks of 16 words come from the cache.
  const again = seeded('11', caching);
  expect(again.data.points[0]!.tokens.cached_share.value).toBeCloseTo(32 / 40, 9);
  expect(again.codes).toEqual(expect.arrayContaining(['prefix_cache_carry_over', 'seed_repeated']));
  expect(again.data.points[0]!.server.prefix_cache_hit_ratio.value).toBeGreaterThan(0.5);

  // If the server does not report cached tokens, the probe detects that its repeated prompt is answered in 22 instead of 60 ms.
  const unreported = seeded('12', caching, { report_cached: false });
  expect(unreported.data.probe).toMatchObject({ caches_prefixes: true, repeated_cached_tokens: null });
  // A server that does not cache.
  const plain = seeded('13');
  expect(plain.data.probe).toMatchObject({ caches_prefixes: false });
  expect(plain.codes).not.toContain('prefix_cache_carry_over');
});
