import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readServerMetrics } from '../../src/model/server-metrics.js';
import { servingDocumentSchema } from '../../src/model/documents/serving.js';
import {
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  listSessions,
  startServe,
  sqlRows,
  widestLine,
} from './run-cli.js';

const setup = createSetup();
let server: ChildProcess;
let url: string;

beforeAll(async () => {
  ({ child: server, url } = await startServe(setup));
});
afterAll(() => server.kill('SIGKILL'));

const small = ['--requests', '4', '--input-len', '8', '--output-len', '6', '--timeout', '30s'];

test('serve binds to loopback; bench serve measures it, and writes a session with its requests and a CSV file', async () => {
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
  const args = ['bench', 'serve', url, '--concurrency', '1,2', ...small, '--seed', '5'];
  const slo = ['--slo', 'ttft=60s,tpot=10s', '--csv', 'out.csv', '--name', 'loaded'];
  const { status, stdout, stderr } = inferscope(setup, [...args, ...slo, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  const { data } = servingDocumentSchema.parse(JSON.parse(stdout));
  expect(data.target).toMatchObject({ api: 'completions', server: 'inferscope serve' });
  expect(data.points.map(({ load }) => load.concurrency)).toEqual([1, 2]);
  for (const point of data.points) {
    expect(point.requests).toMatchObject({ measured: 4, ok: 4, failed: 0 });
    expect(point.tokens).toMatchObject({ input: { value: 8 }, output: { value: 6 }, chunks_not_tokens: 0 });
    expect(point.latency.itl).toMatchObject({ n: 4 * 5 });
    expect(point.goodput.meets_slo).toBe(true);
    expect(point.server.requests_running_max.value).not.toBeNull();
  }
  expect(readFileSync(join(setup.scratch, 'out.csv'), 'utf8').trim().split('\n')).toHaveLength(3);
  expect(listSessions(setup).map(({ name }) => name)).toEqual(['loaded']);
  const query = 'SELECT bool_and(ttft_ns = first_token_ns - sent_ns) FROM requests WHERE NOT warmup';
  expect(sqlRows(setup, '@last', query)).toEqual([[true]]);

  // Reports that the same seed was used before.
  const again = inferscope(setup, [...args, '--json']);
  expect(JSON.parse(again.stdout)).toMatchObject({ data: { prompts: { seed_used_before: true } } });
  const { stdout: text } = inferscope(setup, [
    'bench',
    'serve',
    url,
    '--rate',
    '20',
    '--requests',
    '5',
    ...small.slice(2),
  ]);
  expect(text).toContain('20 req/s (Poisson)');
  expect(widestLine(text)).toBeLessThanOrEqual(110);
});

test('invalid options are rejected with the reason, and save nothing', async () => {
  const before = listSessions(setup).length;
  const run = (...args: string[]) => inferscope(setup, ['bench', 'serve', ...args, '--json']);
  expectFailure(run('http://127.0.0.1:1'), 4, 'E_SERVER_UNREACHABLE');
  expectFailure(run('http://127.0.0.1:1', '--model', 'x'), 4, 'E_SERVER_UNREACHABLE');
  expect(expectFailure(run(url, '--model', 'gpt-4'), 4, 'E_SERVER_RESPONSE').why).toContain('HTTP 404');
  expectFailure(run(url, '--input-len', '500'), 4, 'E_SERVER_RESPONSE');
  expectFailure(run('ftp://x'), 2, 'E_USAGE');
  expectFailure(run(url, '--slo', 'ttft=fast'), 2, 'E_USAGE');
  expectFailure(run(url, '--rate', '1', '--concurrency', '1'), 2, 'E_USAGE');
  expect(listSessions(setup)).toHaveLength(before);
  expect(unfinishedSessions(setup)).toEqual([]);
});

test('/metrics has the queue, under the names of vLLM', async () => {
  const requestLongOutput = (prompt: string) =>
    fetch(`${url}/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt, max_tokens: 120, temperature: 0, ignore_eos: true }),
    }).then((response) => response.json());
  const answers = Promise.all(['a b', 'c d', 'e f'].map(requestLongOutput));
  const readMetrics = async () => (await fetch(`${new URL(url).origin}/metrics`)).text();
  let text = await readMetrics();
  while (!/num_requests_waiting\{.*\} 2$/m.test(text)) text = await readMetrics();
  const { server: name, reading } = readServerMetrics(text);
  expect(name).toBe('inferscope serve');
  expect(reading).toMatchObject({ requests_running: 1, requests_waiting: 2 });
  expect(reading['kv_cache_usage_ratio']).toBeGreaterThan(0);
  expect(reading['kv_cache_usage_ratio']).toBeLessThanOrEqual(1);
  // With the prefix of vLLM the metrics are read as vLLM's.
  expect(readServerMetrics(text.replaceAll('inferscope:', 'vllm:'))).toEqual({ server: 'vLLM', reading });
  await answers;
  expect(readServerMetrics(await readMetrics()).reading).toMatchObject({
    requests_running: 0,
    requests_waiting: 0,
    kv_cache_usage_ratio: 0,
  });
});

test('Ctrl-C finishes running requests, with exit code 0', async () => {
  const second = await startServe(setup);
  const answer = fetch(`${second.url}/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'a b', max_tokens: 120, temperature: 0, ignore_eos: true }),
  }).then((response) => response.json() as Promise<{ usage: { completion_tokens: number } }>);
  for (;;) {
    const metrics = await (await fetch(`${new URL(second.url).origin}/metrics`)).text();
    if (/num_requests_running\{.*\} 1|generation_tokens_total\{.*\} [1-9]/.test(metrics)) break;
  }
  second.child.kill('SIGINT');
  expect((await answer).usage.completion_tokens).toBe(120);
  const [code] = (await once(second.child, 'exit')) as [number];
  expect(code).toBe(0);
});
