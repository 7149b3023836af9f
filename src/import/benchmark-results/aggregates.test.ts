import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { fixture, loadResults, type LoadedResults } from './test-load.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-aggregates-'));
afterAll(() => rmSync(folder, { recursive: true }));
const writeJson = (name: string, value: unknown) => {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(value));
  return path;
};
const json = (name: string) => JSON.parse(readFileSync(fixture(name), 'utf8')) as Record<string, unknown>;
const codes = (results: LoadedResults) => results.issues.map(({ code }) => code);
/** Every number of a point as `name statistic unit`. */
const figures = (results: LoadedResults, point = 0) =>
  Object.fromEntries(
    results.metrics
      .filter((metric) => metric.point === point)
      .map(({ name, statistic, unit, value }) => [`${name} ${statistic} ${unit}`, value]),
  );

describe('InferenceX', () => {
  test('reads every latency of agg_*.json in ms', async () => {
    const results = await loadResults(fixture('inferencex-agg.json'));
    expect(results.importer).toBe('inferencex');
    expect(figures(results)).toEqual({
      'inferencex.tput_per_gpu value tok/s/GPU': 720.5,
      'inferencex.output_tput_per_gpu value tok/s/GPU': 640.25,
      'inferencex.input_tput_per_gpu value tok/s/GPU': 80.25,
      'inferencex.ttft mean ms': 231.5,
      'inferencex.ttft median ms': 198,
      'inferencex.ttft sd_population ms': 104,
      'inferencex.ttft p99 ms': 912,
      'inferencex.tpot mean ms': 12.5,
      'inferencex.tpot median ms': 8,
      'inferencex.tpot sd_population ms': 2,
      'inferencex.tpot p99 ms': 16,
      'inferencex.itl mean ms': 12.4,
      'inferencex.itl median ms': 7.9,
      'inferencex.itl sd_population ms': 4,
      'inferencex.itl p99 ms': 31,
      'e2e mean ms': 102_400,
      'e2e median ms': 65_700,
      'e2e sd_population ms': 9_500,
      'e2e p99 ms': 131_900,
      // 1000 / 12.5, 1000 / 8 and 1000 / 16 ms; 1000 / the deviation has no meaning.
      'inferencex.intvty mean tok/s/user': 80,
      'inferencex.intvty median tok/s/user': 125,
      'inferencex.intvty p99 tok/s/user': 62.5,
    });
    expect(results.metrics[0]!.label).toBe('tp 8, 1024 in, 8192 out, concurrency 64');
    expect(codes(results)).toEqual([]);
  });

  test('an array gives one point per entry; impossible numbers are counted', async () => {
    const entry = json('inferencex-agg.json');
    const results = await loadResults(
      writeJson('agg_bmk.json', [
        entry,
        { ...entry, conc: 128, request_throughput: 3, model_id: 'm', mean_ttft: -1 },
      ]),
    );
    expect(results.importer).toBe('inferencex');
    expect(results.value('inferencex.ttft', 'median', 'file', 1)).toBe(198);
    expect(() => results.value('inferencex.ttft', 'mean', 'file', 1)).toThrow('0 of inferencex.ttft mean');
    expect(results.issues).toMatchObject([{ code: 'impossible_values', count: 1 }]);
  });
});

describe('vllm bench serve, reduced to its numbers', () => {
  test('reads the file of early 2025 without model and backend', async () => {
    const results = await loadResults(fixture('vllm-serve-trimmed.json'));
    const file = json('vllm-serve-trimmed.json');
    expect(results.importer).toBe('vllm-bench-serve');
    for (const metric of ['ttft', 'tpot', 'itl'])
      for (const statistic of ['mean', 'median', 'p99'])
        expect(results.value(`vllm.${metric}`, statistic)).toBe(file[`${statistic}_${metric}_ms`]);
    expect(results.value('output_throughput', 'value')).toBe(1616.2);
    expect(results.value('completed', 'value')).toBe(100);
    expect(codes(results)).toEqual(['ttft_defined_otherwise']);
  });

  test('reports a file without latencies', async () => {
    const results = await loadResults(
      writeJson('none.json', {
        model_id: 'm',
        request_throughput: 2,
        completed: 10,
        duration: 5,
        mean_ttft: 0.1,
      }),
    );
    expect(codes(results)).toEqual(['no_latencies']);
  });
});

describe('AIPerf over several runs', () => {
  test('one point per combination: mean and spread of the runs', async () => {
    const results = await loadResults(fixture('aiperf-sweep.json'));
    expect(results.importer).toBe('aiperf-sweep');
    expect(figures(results)).toEqual({
      'request_throughput value req/s': 100.5,
      'ttft mean ms': 80.25,
      'ttft p99 ms': 120.5,
      'tpot median ms': 9.5,
      'e2e p90 ms': 912.5,
      'aiperf.inter_chunk_latency mean ms': 9.75,
      'aiperf.request_throughput_avg_over_runs sd req/s': 5,
      'aiperf.request_throughput_avg_over_runs min req/s': 97,
      'aiperf.request_throughput_avg_over_runs max req/s': 104,
      'aiperf.time_to_first_token_p99_over_runs sd ms': 8,
      'aiperf.time_to_first_token_p99_over_runs min ms': 112.5,
      'aiperf.time_to_first_token_p99_over_runs max ms': 128.5,
      'aiperf.inter_token_latency_p50_over_runs sd ms': 0.5,
      'aiperf.inter_token_latency_p50_over_runs min ms': 9,
      'aiperf.inter_token_latency_p50_over_runs max ms': 10,
      'aiperf.request_latency_p90_over_runs sd ms': 2.5,
      'aiperf.request_latency_p90_over_runs min ms': 910,
      'aiperf.request_latency_p90_over_runs max ms': 915,
      'aiperf.inter_chunk_latency_avg_over_runs sd ms': 0.25,
      'aiperf.inter_chunk_latency_avg_over_runs min ms': 9.5,
      'aiperf.inter_chunk_latency_avg_over_runs max ms': 10,
    });
    // One run: the smallest and largest request, without a deviation.
    expect(figures(results, 1)).toEqual({
      'request_throughput value req/s': 180.5,
      'ttft mean ms': 95.5,
      'ttft min ms': 61,
      'ttft max ms': 160,
      'ttft median ms': 90,
      'ttft p99 ms': 158,
    });
    expect([...new Set(results.metrics.map(({ label }) => label))]).toEqual([
      'concurrency 10',
      'concurrency 20',
    ]);
    expect(results.issues).toMatchObject([{ code: 'benchmark_runs_failed', count: 1 }]);
  });

  test('reads the aggregate of one combination, and rejects one without a metric', async () => {
    const metrics = { request_latency_avg: { mean: 10, std: 1, min: 9, max: 11, unit: 'ms' } };
    const metadata = { aggregation_type: 'confidence', failed_runs: [] };
    const results = await loadResults(
      writeJson('aggregate.json', { schema_version: '1.0', aiperf_version: '0.13.0', metadata, metrics }),
    );
    expect([results.importer, results.value('e2e', 'mean')]).toEqual(['aiperf-sweep', 10]);
    expect(codes(results)).toEqual(['not_streamed']);
    await expect(loadResults(writeJson('empty.json', { metadata, metrics: {} }))).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
    });
  });
});
