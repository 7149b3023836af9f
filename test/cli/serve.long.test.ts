import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readServerMetrics } from '../../src/model/server-metrics.js';
import { servingDocumentSchema } from '../../src/model/documents/serving.js';
import { cli, environment, expectFailure, inferscope, leftovers, place, sessions } from './profile-cli.js';

const setup = place();
let server: ChildProcess;
let url: string;

/** Starts `inferscope serve` and waits for its line on stdout. */
async function serve(args: string[] = []): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(
    process.execPath,
    [cli, 'serve', '--model', setup.tiny, '--threads', '1', '--port', '0', '--context-len', '128', ...args],
    { cwd: setup.scratch, env: environment(setup), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  return { child, url: line.toString().trim() };
}

beforeAll(async () => {
  ({ child: server, url } = await serve());
});
afterAll(() => server.kill('SIGKILL'));

const small = ['--requests', '4', '--input-len', '8', '--output-len', '6', '--timeout', '30s'];

test('serve binds to loopback and is measured by bench serve: a session, its requests, its CSV', async () => {
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
  const args = ['bench', 'serve', url, '--concurrency', '1,2', ...small, '--seed', '5'];
  const slo = ['--slo', 'ttft=60s,tpot=10s', '--csv', 'out.csv', '--name', 'loaded'];
  const { status, stdout, stderr } = inferscope(setup, [...args, ...slo, '--json']);
  expect([status, stderr.match(/error.*/)?.[0]]).toEqual([0, undefined]);
  const { data } = servingDocumentSchema.parse(JSON.parse(stdout));
  expect(data.target).toMatchObject({ api: 'completions', server: 'inferscope serve' });
  expect(data.points.map(({ load }) => load.concurrency)).toEqual([1, 2]);
  for (const point of data.points) {
    expect(point.requests).toMatchObject({ counted: 4, ok: 4, failed: 0 });
    expect(point.tokens).toMatchObject({ input: { value: 8 }, output: { value: 6 }, chunks_not_tokens: 0 });
    expect(point.latency.itl).toMatchObject({ n: 4 * 5 });
    expect(point.goodput.meets_slo).toBe(true);
    expect(point.server.requests_running_max.value).not.toBeNull();
  }
  expect(readFileSync(join(setup.scratch, 'out.csv'), 'utf8').trim().split('\n')).toHaveLength(3);
  expect(sessions(setup).map(({ name }) => name)).toEqual(['loaded']);
  const sql =
    'SELECT count(*) AS n, count(DISTINCT input_tokens) AS lengths, bool_and(ttft_ns = first_token_ns - sent_ns) AS fits FROM requests WHERE NOT warmup';
  const answered = inferscope(setup, ['sql', '--session', '@last', sql, '--json']);
  expect(answered.stdout).toContain('true');

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
  expect(text).toContain('20 req/s (poisson)');
  for (const line of text.split('\n')) expect([...line].length).toBeLessThanOrEqual(110);
});

test('invalid options are errors with the reason, and leave nothing', async () => {
  const before = sessions(setup).length;
  const run = (...args: string[]) => inferscope(setup, ['bench', 'serve', ...args, '--json']);
  expectFailure(run('http://127.0.0.1:1'), 4, 'E_SERVER_UNREACHABLE');
  expectFailure(run('http://127.0.0.1:1', '--model', 'x'), 4, 'E_SERVER_UNREACHABLE');
  expect(expectFailure(run(url, '--model', 'gpt-4'), 4, 'E_SERVER_RESPONSE').why).toContain('HTTP 404');
  expectFailure(run(url, '--input-len', '500'), 4, 'E_SERVER_RESPONSE');
  expectFailure(run('ftp://x'), 2, 'E_USAGE');
  expectFailure(run(url, '--slo', 'ttft=fast'), 2, 'E_USAGE');
  expectFailure(run(url, '--rate', '1', '--concurrency', '1'), 2, 'E_USAGE');
  expect(sessions(setup)).toHaveLength(before);
  expect(leftovers(setup)).toEqual([]);
});

test('the queue shows in /metrics, under the names of vLLM', async () => {
  const long = (prompt: string) =>
    fetch(`${url}/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt, max_tokens: 120, temperature: 0, ignore_eos: true }),
    }).then((response) => response.json());
  const answers = Promise.all(['a b', 'c d', 'e f'].map(long));
  const page = async () => (await fetch(`${new URL(url).origin}/metrics`)).text();
  let text = await page();
  while (!/num_requests_waiting\{.*\} 2$/m.test(text)) text = await page();
  const { server: name, reading } = readServerMetrics(text);
  expect(name).toBe('inferscope serve');
  expect(reading).toMatchObject({ requests_running: 1, requests_waiting: 2 });
  expect(reading['kv_cache_usage_ratio']).toBeGreaterThan(0);
  expect(reading['kv_cache_usage_ratio']).toBeLessThanOrEqual(1);
  // The server has the same metrics names as vLLM.
  expect(readServerMetrics(text.replaceAll('inferscope:', 'vllm:'))).toEqual({ server: 'vLLM', reading });
  await answers;
  expect(readServerMetrics(await page()).reading).toMatchObject({
    requests_running: 0,
    requests_waiting: 0,
    kv_cache_usage_ratio: 0,
  });
});

test('Ctrl-C finishes running requests, with exit code 0', async () => {
  const second = await serve();
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
