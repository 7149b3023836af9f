import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadResults } from './test-load.js';

/**
 * Files that guidellm 0.8.1 wrote (see ORIGIN.md next to them). The oracle is GuideLLM itself: its values per request
 * (fields of `requests`), its distributions of them, and the tables it printed.
 */
const recorded = (run: string) => join('test/fixtures/benchmark-results-recorded', `guidellm-${run}.json`);
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
  (JSON.parse(readFileSync(recorded(run), 'utf8')) as { benchmarks: Benchmark[] }).benchmarks;
const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const codes = (found: Awaited<ReturnType<typeof loadResults>>) =>
  found.issues.map(({ code, count }) => (count === undefined ? code : `${code} ${count}`));

describe('GuideLLM 0.8.1', () => {
  test('answers of several lengths: its inter-token latency is weighted, TPOT is one per request', async () => {
    const found = await loadResults(recorded('errors'));
    const [{ metrics, requests, duration }] = benchmarks('errors') as [Benchmark];
    expect(found.importer).toBe('guidellm');
    const per = requests.successful;
    const tpot = meanOf(per.map((request) => request.inter_token_latency_ms));
    const gaps = per.reduce((sum, request) => sum + request.output_tokens - 1, 0);
    const weighted =
      per.reduce((sum, request) => sum + request.inter_token_latency_ms * (request.output_tokens - 1), 0) /
      gaps;
    // By hand: 8 answers of 7, 12, 14, 8, 17, 16, 18 and 6 tokens have 90 gaps. Its table says 7.4 ms.
    expect(metrics['inter_token_latency_ms']!.successful.count).toBe(90);
    expect(found.value('guidellm.inter_token_latency', 'mean')).toBeCloseTo(weighted, 6);
    expect(found.value('guidellm.inter_token_latency', 'mean')).toBeCloseTo(7.4, 1);
    expect(found.value('tpot', 'mean', 'recomputed')).toBeCloseTo(tpot, 6);
    expect(tpot).toBeLessThan(0.95 * weighted);
    // 90 entries are eight observations.
    expect(found.metrics.find(({ name }) => name === 'guidellm.inter_token_latency')!.n).toBeNull();
    expect(() => found.value('tpot', 'mean', 'file')).toThrow();
    expect(codes(found)).not.toContain('recomputed_differs');
    // Metrics that both define per request agree.
    const { successful: ttft } = metrics['time_to_first_token_ms']!;
    expect(found.value('ttft', 'mean')).toBe(ttft.mean);
    expect(found.value('ttft', 'mean', 'recomputed')).toBeCloseTo(ttft.mean, 6);
    expect(found.value('ttft', 'sd', 'recomputed') * Math.sqrt(7 / 8)).toBeCloseTo(ttft.std_dev, 6);
    expect(found.value('ttft', 'p95_step')).toBeCloseTo(48.3, 1);
    expect(found.value('guidellm.time_per_output_token', 'mean')).toBeCloseTo(10.5, 1);
    // Its time-weighted rate equals the plain one if nothing was cut off.
    for (const [ours, theirName] of [
      ['request_throughput', 'requests_per_second'],
      ['output_throughput', 'output_tokens_per_second'],
    ] as const)
      expect(found.value(ours, 'value', 'recomputed')).toBeCloseTo(metrics[theirName]!.successful.mean, 3);
    expect(found.value('output_throughput', 'value', 'recomputed')).toBeCloseTo(98 / duration, 9);
  });

  test('a 429 and cut streams: failures have errors and are excluded from figures', async () => {
    const found = await loadResults(recorded('errors'));
    expect([found.value('completed', 'value'), found.value('failed', 'value')]).toEqual([8, 4]);
    expect(codes(found)).toEqual(['percentiles_defined_otherwise', 'requests_failed 4']);
    const failed = found.requests.filter(({ status }) => status === 'failed');
    expect(failed.map(({ error }) => /429|closed/.exec(error!)?.[0])).toEqual([
      '429',
      'closed',
      '429',
      'closed',
    ]);
    // Two of them had a first token, and the tool a distribution of those; inferscope has none.
    expect(failed.every(({ ttft_ns, end_ns }) => ttft_ns === null && end_ns === null)).toBe(true);
    expect(found.value('input_tokens', 'value')).toBe(78);
    expect(found.value('output_tokens', 'value')).toBe(98);
    expect(found.facts.software).toMatchObject({
      benchmark_model: 'programmed',
      benchmark_backend: '/v1/chat/completions',
    });
  });

  test('a sweep: one point per load; with answers of one length its inter-token latency is TPOT', async () => {
    const found = await loadResults(recorded('sweep'));
    expect([...new Set(found.metrics.map(({ label }) => label))]).toEqual([
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
      expect(found.value('ttft', 'mean', 'file', point)).toBeCloseTo(ttft!, 1);
      expect(Math.abs(found.value('tpot', 'mean', 'file', point) - tpot!)).toBeLessThan(0.06);
      expect(found.value('tpot', 'mean', 'file', point)).toBe(
        metrics['inter_token_latency_ms']!.successful.mean,
      );
      expect(found.value('tpot', 'mean', 'recomputed', point)).toBeCloseTo(
        meanOf(requests.successful.map((request) => request.inter_token_latency_ms)),
        6,
      );
      const reported = found.metrics.find(
        (metric) => metric.point === point && metric.name === 'tpot' && metric.source!.startsWith('file'),
      );
      expect(reported!.n).toBe(4);
    }
    // Only the constant rate has due times.
    expect(found.names(1)).not.toContain('guidellm.request_dispatch_delay');
    expect(found.value('guidellm.request_scheduled_latency', 'mean', 'file', 2)).toBeCloseTo(
      found.value('guidellm.request_latency', 'mean', 'file', 2) +
        found.value('guidellm.request_dispatch_delay', 'mean', 'file', 2),
      6,
    );
  });

  test('a warm-up: its requests are excluded, and the figures of the window keep their definition', async () => {
    const found = await loadResults(recorded('warm'));
    const [{ metrics, requests, start_time }] = benchmarks('warm') as [Benchmark];
    // By hand: 15 answers, of which three ended before the window started; its end cut off 2.
    expect(requests.successful).toHaveLength(15);
    expect(found.value('completed', 'value')).toBe(12);
    const warm = found.requests.filter(({ warmup }) => warmup);
    expect(warm.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
    expect(codes(found)).toEqual([
      'percentiles_defined_otherwise',
      'requests_incomplete 2',
      'warmup_left_out',
    ]);
    // It counted the same twelve.
    expect(metrics['request_latency']!.successful.count).toBe(12);
    expect(
      found.metrics.find(({ name, source }) => name === 'e2e' && source!.startsWith('recomputed'))!.n,
    ).toBe(12);
    expect(found.names()).not.toContain('duration');
    expect(found.names()).not.toContain('request_throughput');
    expect(found.issues.at(-1)!.text).toBe(
      'concurrent 2: 3 requests in warm-up or cool-down are excluded from all figures; the measured window is 716 ms.',
    );
    // Rows start with the first request, 0.284 s before the window.
    expect(Math.min(...found.requests.map(({ sent_ns }) => sent_ns!))).toBe(0);
    expect(Number(found.facts.realtime_zero_ns) / 1e9).toBeCloseTo(start_time - 0.2843, 3);
  });

  test('without streaming: the zeros of its inter-token latency are dropped, and there is no first token', async () => {
    const found = await loadResults(recorded('nostream'));
    const [{ metrics }] = benchmarks('nostream') as [Benchmark];
    // 4 answers of 44 tokens: 40 entries of 0 ms.
    expect(metrics['inter_token_latency_ms']!.successful).toMatchObject({ count: 40, mean: 0, max: 0 });
    for (const name of ['tpot', 'guidellm.inter_token_latency', 'ttft', 'e2e'])
      expect(found.names()).not.toContain(name);
    expect(found.value('guidellm.request_latency', 'mean')).toBeCloseTo(157.52, 2);
    expect(found.requests.every(({ tpot_ns, end_ns }) => tpot_ns === null && end_ns === null)).toBe(true);
    expect(codes(found)).toEqual(['percentiles_defined_otherwise', 'not_streamed']);
  });

  test('if all requests failed, its zeros are not measurements', async () => {
    const found = await loadResults(recorded('allfailed'));
    expect(found.names()).toEqual(['completed', 'duration', 'failed']);
    expect(found.value('failed', 'value')).toBe(3);
    expect(codes(found)).toContain('all_requests_failed');
  });
});
