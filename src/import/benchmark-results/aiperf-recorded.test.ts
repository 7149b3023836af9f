import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadResults, type LoadedResults } from './test-load.js';

/** Files that aiperf 0.13.0 wrote (see ORIGIN.md next to them); its own figures, computed by numpy, are the oracle. */
const fixturePath = (run: string, name: string) =>
  join('test/fixtures/benchmark-results-recorded', `aiperf-${run}-profile_export${name}`);
type Summary = Record<string, Record<string, number>>;
const summaryOf = (run: string) =>
  JSON.parse(readFileSync(fixturePath(run, '_aiperf.json'), 'utf8')) as Summary;
const codes = (results: LoadedResults) =>
  results.issues.map(({ code, count }) => (count === undefined ? code : `${code} ${count}`));
const pairs = [
  ['ttft', 'time_to_first_token'],
  ['tpot', 'inter_token_latency'],
  ['e2e', 'request_latency'],
] as const;

describe('AIPerf 0.13.0', () => {
  test.each([
    ['conc', 'concurrency 2'],
    ['errors', 'rate 8'],
  ])('%s: the load is that of the measured phase; requests do not name it', async (run, load) => {
    const labels = async (name: string) =>
      new Set((await loadResults(fixturePath(run, name))).metrics.map(({ label }) => label));
    expect(await labels('_aiperf.json')).toEqual(new Set([load]));
    expect(await labels('.jsonl')).toEqual(new Set(['unknown load']));
  });

  test.each(['conc', 'errors', 'chunks'])(
    '%s: figures recomputed from its requests equal its summary',
    async (run) => {
      const [summary, requests] = [
        await loadResults(fixturePath(run, '_aiperf.json')),
        await loadResults(fixturePath(run, '.jsonl')),
      ];
      const file = summaryOf(run);
      expect([summary.importer, requests.importer]).toEqual(['aiperf-summary', 'aiperf-requests']);
      for (const [ourName, theirName] of pairs) {
        const n = file[theirName]!['count']!;
        for (const [statistic, key] of [
          ['mean', 'avg'],
          ['median', 'p50'],
          ['p90', 'p90'],
          ['p95', 'p95'],
          ['p99', 'p99'],
          ['min', 'min'],
          ['max', 'max'],
        ] as const) {
          expect(summary.value(ourName, statistic)).toBe(file[theirName]![key]);
          expect(requests.value(ourName, statistic, 'recomputed')).toBeCloseTo(file[theirName]![key]!, 6);
        }
        // Its deviation has ddof 0, numpy's default.
        expect(summary.value(ourName, 'sd_population')).toBe(file[theirName]!['std']);
        expect(requests.value(ourName, 'sd', 'recomputed') * Math.sqrt((n - 1) / n)).toBeCloseTo(
          file[theirName]!['std']!,
          6,
        );
      }
      for (const [ourName, theirName] of [
        ['request_throughput', 'request_throughput'],
        ['output_throughput', 'output_token_throughput'],
        ['total_throughput', 'total_token_throughput'],
        ['completed', 'request_count'],
        ['duration', 'benchmark_duration'],
      ] as const)
        expect(summary.value(ourName, 'value')).toBe(file[theirName]!['avg']);
    },
  );

  test('equals its printed table; reads warm-up requests and the configuration', async () => {
    const results = await loadResults(fixturePath('conc', '_aiperf.json'));
    // As printed on its console: TTFT 45.53 avg, 64.47 p99, 7.06 std; 17.94 requests/s, 215.31 tokens/s.
    expect(results.value('ttft', 'mean')).toBeCloseTo(45.53, 2);
    expect(results.value('ttft', 'p99')).toBeCloseTo(64.47, 2);
    expect(results.value('ttft', 'sd_population')).toBeCloseTo(7.06, 2);
    expect(results.value('request_throughput', 'value')).toBeCloseTo(17.94, 2);
    expect(results.value('output_throughput', 'value')).toBeCloseTo(215.31, 2);
    expect(results.facts).toMatchObject({
      tool: { name: 'aiperf', version: '0.13.0' },
      software: { benchmark_model: 'programmed' },
    });
    const { requests } = await loadResults(fixturePath('conc', '.jsonl'));
    expect(requests.map(({ warmup }) => warmup)).toEqual([true, true, ...Array<boolean>(10).fill(false)]);
    // Ten requests of 10 + 2 tokens, one token per chunk, so every gap is known.
    expect(requests.every(({ itl_ns }) => (JSON.parse(itl_ns!) as number[]).length === 11)).toBe(true);
  });

  test('a 429 and a cut stream are failures; token counts of its own tokenizer are reported', async () => {
    const summary = await loadResults(fixturePath('errors', '_aiperf.json'));
    expect([summary.value('completed', 'value'), summary.value('failed', 'value')]).toEqual([8, 4]);
    // The server wrote 8 × 12 tokens; the tokenizer makes two of each ` tok`.
    expect(codes(summary)).toEqual(['requests_failed 4', 'token_counts_differ']);
    expect(summary.issues[1]!.text).toContain("192 output tokens, the server's usage reports 96");
    // Its latency from the scheduled time includes all twelve requests, also rejections of 1 ms, so it is not a latency
    // of answers.
    const effective = summary.metrics.find(({ name }) => name === 'aiperf.effective_latency')!;
    expect([effective.n, effective.same_definition]).toEqual([12, false]);
    expect(effective.definition).toContain('includes failed requests');
    expect(effective.value!).toBeLessThan(summary.value('e2e', 'mean'));
    const results = await loadResults(fixturePath('errors', '.jsonl'));
    expect(codes(results)).toEqual(['token_counts_differ', 'requests_failed 4', 'chunk_is_not_token 8']);
    const failed = results.requests.filter(({ status }) => status !== 'ok');
    expect(failed.map(({ error }) => error!.slice(0, 18))).toEqual([
      'ClientPayloadError',
      'HTTP 429: {"error"',
      'ClientPayloadError',
      'HTTP 429: {"error"',
    ]);
    expect(failed.every(({ ttft_ns, end_ns }) => ttft_ns === null && end_ns === null)).toBe(true);
  });

  test('chunks of three tokens: TPOT counts tokens, there is no ITL', async () => {
    const results = await loadResults(fixturePath('chunks', '.jsonl'));
    expect(results.names()).not.toContain('itl');
    expect(results.requests.map(({ chunks, output_tokens }) => [chunks, output_tokens])).toEqual(
      Array.from({ length: 6 }, () => [4, 12]),
    );
    expect(codes(results)).toEqual(['chunk_is_not_token 6']);
  });

  test('without streaming there is no first token, and the zeros of its phases are dropped', async () => {
    const summary = await loadResults(fixturePath('nostream', '_aiperf.json'));
    expect(summaryOf('nostream')['effective_decode_throughput']!['avg']).toBe(0);
    expect(summary.names().filter((name) => /decode|prefill/.test(name))).toEqual([]);
    expect(codes(summary)).toEqual(['not_streamed']);
    const results = await loadResults(fixturePath('nostream', '.jsonl'));
    expect(results.names()).toEqual(['completed', 'e2e', 'failed']);
    expect(results.value('e2e', 'mean', 'recomputed')).toBeCloseTo(summary.value('e2e', 'mean'), 6);
    expect(codes(results)).toEqual(['not_streamed']);
  });

  test('if all requests failed it writes no summary, and the requests show the failures', async () => {
    const results = await loadResults(fixturePath('allfailed', '.jsonl'));
    expect(results.names()).toEqual(['completed', 'failed']);
    expect(results.value('failed', 'value', 'recomputed')).toBe(3);
    expect(codes(results)).toEqual(['requests_failed 3', 'all_requests_failed']);
  });
});
