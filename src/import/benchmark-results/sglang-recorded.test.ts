import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseLenient } from './result-text.js';
import { loadResults } from './test-load.js';

/** Files that sglang 0.5.23's bench_serving wrote (see ORIGIN.md next to them); its own figures, computed by numpy, are the oracle. */
const fixturePath = (name: string) =>
  join('test/fixtures/benchmark-results-recorded', `sglang-${name}.jsonl`);
type Run = Record<string, number & (number | string)[]> & { itls: number[][] };
const runsOf = (name: string) =>
  readFileSync(fixturePath(name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => parseLenient(line) as Run);

describe('SGLang 0.5.23 bench_serving', () => {
  test.each([
    ['oai', 0],
    ['errors', 0],
    ['errors', 1],
    ['oai-chat-serve', 0],
  ] as const)(
    '%s, line %i: TTFT and all other figures from the requests equal its own',
    async (name, point) => {
      const results = await loadResults(fixturePath(name));
      const run = runsOf(name)[point]!;
      expect(results.importer).toBe('sglang-bench-serving');
      const n = run['completed']!;
      for (const statistic of ['mean', 'median', 'p90', 'p95', 'p99']) {
        expect(results.value('ttft', statistic, 'file', point)).toBe(run[`${statistic}_ttft_ms`]);
        expect(results.value('ttft', statistic, 'recomputed', point)).toBeCloseTo(
          run[`${statistic}_ttft_ms`]!,
          6,
        );
        // Every chunk was a token here, so its gaps are gaps of tokens.
        expect(results.value('itl', statistic, 'recomputed', point)).toBeCloseTo(
          run[`${statistic}_itl_ms`]!,
          6,
        );
        for (const metricName of ['tpot', 'itl', 'e2e_latency'])
          expect(results.value(`sglang.${metricName}`, statistic, 'file', point)).toBe(
            run[`${statistic}_${metricName}_ms`],
          );
      }
      expect(results.value('ttft', 'sd', 'recomputed', point) * Math.sqrt((n - 1) / n)).toBeCloseTo(
        run['std_ttft_ms']!,
        6,
      );
      expect(results.value('sglang.itl', 'sd_population', 'file', point)).toBe(run['std_itl_ms']);
      for (const key of ['request_throughput', 'output_throughput', 'total_throughput', 'duration'])
        expect(results.value(key, 'value', 'file', point)).toBe(run[key]);
      // Its end is that of the stream, some hundredths of a millisecond after the last text.
      const after = run['mean_e2e_latency_ms']! - results.value('e2e', 'mean', 'recomputed', point);
      expect(after).toBeGreaterThan(0);
      expect(after).toBeLessThan(0.5);
      expect(results.issues.map(({ code }) => code)).not.toContain('recomputed_differs');
    },
  );

  test('equals its printed table', async () => {
    const { value } = await loadResults(fixturePath('oai'));
    // As printed: Mean TTFT 43.88, P99 ITL 43.57, Mean TPOT 5.66, 20.70 req/s, 194.03 tok/s, peak of 75 tok/s.
    expect(value('ttft', 'mean')).toBeCloseTo(43.88, 2);
    expect(value('sglang.itl', 'p99')).toBeCloseTo(43.57, 2);
    expect(value('sglang.tpot', 'mean')).toBeCloseTo(5.66, 2);
    expect(value('request_throughput', 'value')).toBeCloseTo(20.7, 2);
    expect(value('output_throughput', 'value')).toBeCloseTo(194.03, 2);
    expect(value('sglang.max_output_tokens_per_s', 'value')).toBe(75);
    expect(value('sglang.max_concurrent_requests', 'value')).toBe(8);
    expect(value('failed', 'value', 'recomputed')).toBe(0);
  });

  test('a 429 and cut streams: failures have errors and are excluded from figures', async () => {
    const results = await loadResults(fixturePath('errors'));
    expect(results.metrics.map(({ label }) => label)).toContain('rate 20');
    const rows = results.requests.slice(0, 10);
    expect(rows.filter(({ status }) => status === 'ok')).toHaveLength(7);
    expect(rows[5]).toMatchObject({ status: 'failed', error: 'X: {"error":{"message":"slow down"}}' });
    // The cut ones had a first token, which the tool excludes too.
    expect(rows[1]).toMatchObject({ status: 'failed', ttft_ns: null, output_tokens: null });
    expect(rows[1]!.error).toContain('Not enough data');
    expect(results.value('failed', 'value', 'recomputed')).toBe(3);
    expect(results.issues.map(({ code, count }) => [code, count])).toContainEqual(['requests_failed', 3]);
    // The second line ran with --goodput ttft:60 tpot:6, which every request met.
    expect(results.value('sglang.slo_attainment', 'value', 'file', 1)).toBe(1);
    expect(results.value('sglang.request_goodput', 'value', 'file', 1)).toBe(
      results.value('request_throughput', 'value', 'file', 1),
    );
  });

  test('--disable-stream: its TTFT covers the whole answer and its zeros are dropped', async () => {
    const results = await loadResults(fixturePath('nostream'));
    const [run] = runsOf('nostream');
    expect([run!['mean_tpot_ms'], run!['mean_itl_ms']]).toEqual([0, 0]);
    expect(results.names().filter((name) => /ttft|tpot|itl|e2e/.test(name))).toEqual([
      'e2e',
      'sglang.e2e_latency',
      'sglang.ttft',
    ]);
    expect(results.value('e2e', 'p99', 'recomputed')).toBeCloseTo(run!['p99_e2e_latency_ms']!, 6);
    expect(results.requests.every(({ ttft_ns, end_ns }) => ttft_ns === null && end_ns === null)).toBe(true);
    expect(results.issues.map(({ code }) => code)).toEqual(['not_streamed']);
  });

  test('token counts that may be requested lengths are reported', async () => {
    const { issues } = await loadResults(fixturePath('oai'));
    expect(issues.map(({ code }) => code)).toEqual(['output_tokens_maybe_requested']);
    expect(issues[0]!.text).toContain('75 output tokens were counted, but the local tokenizer finds 150');
  });
});
