import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadResults } from './test-load.js';

/** Files that vLLM 0.32.0 wrote (see ORIGIN.md next to them); its own summaries, computed by numpy, are the oracle. */
const fixturePath = (name: string) => join('test/fixtures/vllm-0.32.0-cpu', `${name}.json`);
type Run = Record<string, number & number[] & number[][]>;
const json = (name: string) => JSON.parse(readFileSync(fixturePath(name), 'utf8')) as Run;
const folder = mkdtempSync(join(tmpdir(), 'inferscope-vllm-results-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('vllm bench serve: figures recomputed from its requests equal its summary', async () => {
  const results = await loadResults(fixturePath('vllm-bench-serve'));
  const file = json('vllm-bench-serve');
  expect(results.importer).toBe('vllm-bench-serve');
  for (const [ourName, theirName] of [
    ['ttft', 'ttft'],
    ['tpot', 'tpot'],
    ['e2e', 'e2el'],
  ] as const) {
    for (const statistic of ['mean', 'median', 'p90', 'p99'])
      expect(results.value(ourName, statistic, 'recomputed')).toBeCloseTo(
        file[`${statistic}_${theirName}_ms`]!,
        6,
      );
  }
  // Since 2026 the client writes each request's own latency: TTFT and the gaps after it.
  expect(results.requests.map(({ end_ns, sent_ns }) => (end_ns! - sent_ns!) / 1e6)).toEqual(
    file['latencies']!.map((seconds: number) => expect.closeTo(seconds * 1000, 3)),
  );
  // By hand: 12 requests of 16 tokens; in four of them some chunks had two.
  expect(file['itls']!.map((gaps: number[]) => gaps.length)).toEqual([
    15, 15, 15, 15, 15, 15, 15, 15, 12, 12, 12, 12,
  ]);
  expect(results.value('output_tokens', 'value')).toBe(12 * 16);
  expect(results.issues.map(({ code, count }) => [code, count])).toContainEqual(['chunk_is_not_token', 4]);
});

test("the chat endpoint keeps the tool's names, and the client queue time is a separate metric", async () => {
  const chat = await loadResults(fixturePath('vllm-bench-serve-chat'));
  expect(chat.names()).not.toContain('ttft');
  expect(chat.value('vllm.ttft', 'mean')).toBe(json('vllm-bench-serve-chat')['mean_ttft_ms']);
  // As for --percentile-metrics client_queue_time: the requests' times, by numpy.
  const run = json('vllm-bench-serve');
  const waits = run['queue_times']!.map((seconds: number) => seconds * 1000);
  const mean = waits.reduce((sum: number, wait: number) => sum + wait, 0) / waits.length;
  const path = join(folder, 'queue.json');
  writeFileSync(path, JSON.stringify({ ...run, mean_client_queue_time_ms: mean }));
  const results = await loadResults(path);
  expect(results.value('vllm.client_queue_time', 'mean')).toBe(mean);
  expect(results.names()).not.toContain('client_queue_time');
});

test('vllm bench throughput: four prompts of 16 and their 8 tokens', async () => {
  const results = await loadResults(fixturePath('vllm-bench-throughput'));
  expect(results.importer).toBe('vllm-bench-throughput');
  const seconds = json('vllm-bench-throughput')['elapsed_time']!;
  expect(results.value('total_throughput', 'value')).toBeCloseTo((4 * (16 + 8)) / seconds, 9);
  expect(results.value('request_throughput', 'value')).toBeCloseTo(4 / seconds, 9);
  expect(results.facts.software).toEqual({ benchmark_model: 'tiny' });
  expect(results.names()).not.toContain('output_throughput');
});

test('vllm bench latency: its mean equals that of its repeats', async () => {
  const results = await loadResults(fixturePath('vllm-bench-latency'));
  expect(results.importer).toBe('vllm-bench-latency');
  const seconds = json('vllm-bench-latency')['latencies']!;
  expect(results.value('vllm.batch_latency', 'mean')).toBeCloseTo(
    (seconds.reduce((sum: number, value: number) => sum + value, 0) / 3) * 1000,
    6,
  );
  // numpy's median of three values is the middle one.
  expect(results.value('vllm.batch_latency', 'median')).toBeCloseTo(
    [...seconds].sort((a, b) => a - b)[1]! * 1000,
    6,
  );
  expect(results.iterations.map(({ start_ns, end_ns }) => (end_ns! - start_ns!) / 1e9)).toEqual(
    seconds.map((value: number) => expect.closeTo(value, 8)),
  );
  expect(results.facts.software).toEqual({ benchmark_model: 'tiny10k' });
});
