import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadResults } from './test-load.js';

/**
 * Files that guidellm 0.8.1 wrote (see ORIGIN.md next to them). The oracle is GuideLLM itself: its values per request
 * (fields of `requests`), its distributions of them, and the tables it printed.
 */
const fixturePath = (run: string) => join('test/fixtures/benchmark-results-recorded', `guidellm-${run}.json`);
interface Distribution {
  mean: number;
  std_dev: number;
  min: number;
  max: number;
  count: number;
  percentiles: Record<string, number>;
}
interface Request {
  time_to_first_token_ms: number;
  inter_token_latency_ms: number;
  time_per_output_token_ms: number;
  output_tokens: number;
}
interface Benchmark {
  duration: number;
  start_time: number;
  metrics: Record<string, { successful: Distribution }>;
  requests: { successful: Request[] };
}
const benchmarks = (run: string) =>
  (JSON.parse(readFileSync(fixturePath(run), 'utf8')) as { benchmarks: Benchmark[] }).benchmarks;
const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const codes = (results: Awaited<ReturnType<typeof loadResults>>) =>
  results.issues.map(({ code, count }) => (count === undefined ? code : `${code} ${count}`));

describe('GuideLLM 0.8.1', () => {
  test('answers of several lengths: its inter-token latency is weighted, TPOT is one per request', async () => {
    const results = await loadResults(fixturePath('errors'));
    const [{ metrics, requests, duration }] = benchmarks('errors') as [Benchmark];
    expect(results.importer).toBe('guidellm');
    const answers = requests.successful;
    const tpot = meanOf(answers.map((request) => request.inter_token_latency_ms));
    const gaps = answers.reduce((sum, request) => sum + request.output_tokens - 1, 0);
    const weighted =
      answers.reduce(
        (sum, request) => sum + request.inter_token_latency_ms * (request.output_tokens - 1),
        0,
      ) / gaps;
    // By hand: 8 answers of 7, 12, 14, 8, 17, 16, 18 and 6 tokens have 90 gaps. Its table says 7.4 ms.
    expect(metrics['inter_token_latency_ms']!.successful.count).toBe(90);
    expect(results.value('guidellm.inter_token_latency', 'mean')).toBeCloseTo(weighted, 6);
    expect(results.value('guidellm.inter_token_latency', 'mean')).toBeCloseTo(7.4, 1);
    expect(results.value('tpot', 'mean', 'recomputed')).toBeCloseTo(tpot, 6);
    expect(tpot).toBeLessThan(0.95 * weighted);
    // 90 entries are eight observations.
    expect(results.metrics.find(({ name }) => name === 'guidellm.inter_token_latency')!.n).toBeNull();
    expect(() => results.value('tpot', 'mean', 'file')).toThrow();
    expect(codes(results)).not.toContain('recomputed_differs');
    // Metrics that both define per request agree.
    const { successful: ttft } = metrics['time_to_first_token_ms']!;
    expect(results.value('ttft', 'mean')).toBe(ttft.mean);
    expect(results.value('ttft', 'mean', 'recomputed')).toBeCloseTo(ttft.mean, 6);
    expect(results.value('ttft', 'sd', 'recomputed') * Math.sqrt(7 / 8)).toBeCloseTo(ttft.std_dev, 6);
    expect(results.value('ttft', 'p95_step')).toBeCloseTo(48.3, 1);
    expect(results.value('guidellm.time_per_output_token', 'mean')).toBeCloseTo(10.5, 1);
    // Its time-weighted rate equals the plain one if nothing was cut off.
    for (const [ourName, theirName] of [
      ['request_throughput', 'requests_per_second'],
      ['output_throughput', 'output_tokens_per_second'],
    ] as const)
      expect(results.value(ourName, 'value', 'recomputed')).toBeCloseTo(
        metrics[theirName]!.successful.mean,
        3,
      );
    expect(results.value('output_throughput', 'value', 'recomputed')).toBeCloseTo(98 / duration, 9);
  });

  test('a 429 and cut streams: failures have errors and are excluded from figures', async () => {
    const results = await loadResults(fixturePath('errors'));
    expect([results.value('completed', 'value'), results.value('failed', 'value')]).toEqual([8, 4]);
    expect(codes(results)).toEqual(['percentiles_defined_otherwise', 'requests_failed 4']);
    const failed = results.requests.filter(({ status }) => status === 'failed');
    expect(failed.map(({ error }) => /429|closed/.exec(error!)?.[0])).toEqual([
      '429',
      'closed',
      '429',
      'closed',
    ]);
    // Two of them had a first token, and the tool a distribution of those; inferscope has none.
    expect(failed.every(({ ttft_ns, end_ns }) => ttft_ns === null && end_ns === null)).toBe(true);
    expect(results.value('input_tokens', 'value')).toBe(78);
    expect(results.value('output_tokens', 'value')).toBe(98);
    expect(results.facts.software).toMatchObject({
      benchmark_model: 'programmed',
      benchmark_backend: '/v1/chat/completions',
    });
  });

  test('a sweep: one point per load; with answers of one length its inter-token latency is TPOT', async () => {
    const results = await loadResults(fixturePath('sweep'));
    expect([...new Set(results.metrics.map(({ label }) => label))]).toEqual([
      'synchronous',
      'throughput 512',
      'constant 34.83 req/s',
    ]);
    // As in its table: TTFT 43.9, 45.2, 45.7 ms; 5.0, 5.0, 4.9 ms per token.
    for (const [point, [ttft, tpot]] of [
      [43.9, 5.0],
      [45.2, 5.0],
      [45.7, 4.9],
    ].entries()) {
      const { metrics, requests } = benchmarks('sweep')[point]!;
      expect(results.value('ttft', 'mean', 'file', point)).toBeCloseTo(ttft!, 1);
      expect(Math.abs(results.value('tpot', 'mean', 'file', point) - tpot!)).toBeLessThan(0.06);
      expect(results.value('tpot', 'mean', 'file', point)).toBe(
        metrics['inter_token_latency_ms']!.successful.mean,
      );
      expect(results.value('tpot', 'mean', 'recomputed', point)).toBeCloseTo(
        meanOf(requests.successful.map((request) => request.inter_token_latency_ms)),
        6,
      );
      const reported = results.metrics.find(
        (metric) => metric.point === point && metric.name === 'tpot' && metric.source!.startsWith('file'),
      );
      expect(reported!.n).toBe(4);
    }
    // Only the constant rate has due times.
    expect(results.names(1)).not.toContain('guidellm.request_dispatch_delay');
    expect(results.value('guidellm.request_scheduled_latency', 'mean', 'file', 2)).toBeCloseTo(
      results.value('guidellm.request_latency', 'mean', 'file', 2) +
        results.value('guidellm.request_dispatch_delay', 'mean', 'file', 2),
      6,
    );
  });

  test('a warm-up: its requests are excluded, and the figures of the window keep their definition', async () => {
    const results = await loadResults(fixturePath('warm'));
    const [{ metrics, requests, start_time }] = benchmarks('warm') as [Benchmark];
    // By hand: 15 answers, of which three ended before the window started; its end cut off 2.
    expect(requests.successful).toHaveLength(15);
    expect(results.value('completed', 'value')).toBe(12);
    const warm = results.requests.filter(({ warmup }) => warmup);
    expect(warm.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
    expect(codes(results)).toEqual([
      'percentiles_defined_otherwise',
      'requests_incomplete 2',
      'warmup_left_out',
    ]);
    // It counted the same twelve.
    expect(metrics['request_latency']!.successful.count).toBe(12);
    expect(
      results.metrics.find(({ name, source }) => name === 'e2e' && source!.startsWith('recomputed'))!.n,
    ).toBe(12);
    expect(results.names()).not.toContain('duration');
    expect(results.names()).not.toContain('request_throughput');
    expect(results.issues.at(-1)!.text).toBe(
      'concurrent 2: 3 requests in warm-up or cool-down are excluded from all figures; the measured window is 716 ms.',
    );
    // Rows start with the first request, 0.284 s before the window.
    expect(Math.min(...results.requests.map(({ sent_ns }) => sent_ns!))).toBe(0);
    expect(Number(results.facts.realtime_zero_ns) / 1e9).toBeCloseTo(start_time - 0.2843, 3);
  });

  test('without streaming: the zeros of its inter-token latency are dropped, and there is no first token', async () => {
    const results = await loadResults(fixturePath('nostream'));
    const [{ metrics }] = benchmarks('nostream') as [Benchmark];
    // 4 answers of 44 tokens: 40 entries of 0 ms.
    expect(metrics['inter_token_latency_ms']!.successful).toMatchObject({ count: 40, mean: 0, max: 0 });
    for (const name of ['tpot', 'guidellm.inter_token_latency', 'ttft', 'e2e'])
      expect(results.names()).not.toContain(name);
    expect(results.value('guidellm.request_latency', 'mean')).toBeCloseTo(157.52, 2);
    expect(results.requests.every(({ tpot_ns, end_ns }) => tpot_ns === null && end_ns === null)).toBe(true);
    expect(codes(results)).toEqual(['percentiles_defined_otherwise', 'not_streamed']);
  });

  test('if all requests failed, its zeros are not measurements', async () => {
    const results = await loadResults(fixturePath('allfailed'));
    expect(results.names()).toEqual(['completed', 'duration', 'failed']);
    expect(results.value('failed', 'value')).toBe(3);
    expect(codes(results)).toContain('all_requests_failed');
  });
});
