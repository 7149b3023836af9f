import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parseLenient } from './result-text.js';
import { fixture, loadResults } from './test-load.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-results-'));
afterAll(() => rmSync(folder, { recursive: true }));
const writeFixture = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const json = (name: string) => JSON.parse(readFileSync(fixture(name), 'utf8')) as Record<string, never>;
const codes = (results: { issues: { code: string }[] }) => results.issues.map(({ code }) => code);
const latencies = [
  ['ttft', 'ttft'],
  ['tpot', 'tpot'],
  ['e2e', 'e2el'],
] as const;

describe('vllm bench serve', () => {
  test('impossible numbers are dropped and counted', async () => {
    const file = {
      ...json('vllm-serve.json'),
      mean_ttft_ms: -5,
      p99_tpot_ms: 1e308,
      request_throughput: -1,
      completed: 2 ** 63,
    };
    const results = await loadResults(writeFixture('impossible.json', JSON.stringify(file)));
    expect(results.issues.find(({ code }) => code === 'impossible_values')).toMatchObject({ count: 4 });
    expect(() => results.value('ttft', 'mean')).toThrow('0 of ttft mean');
    expect(results.value('ttft', 'median')).toBe(json('vllm-serve.json')['median_ttft_ms']);
    const detailed = json('vllm-serve-detailed.json') as unknown as { ttfts: number[] };
    const requests = await loadResults(
      writeFixture('far.json', JSON.stringify({ ...detailed, ttfts: [1e308, ...detailed.ttfts.slice(1)] })),
    );
    expect(requests.requests).toHaveLength(12);
    expect(requests.requests[0]).toMatchObject({ ttft_ns: null, first_token_ns: null, end_ns: null });
    const line = JSON.parse(
      readFileSync(fixture('sglang.jsonl'), 'utf8').split('\n')[0]!.replaceAll('Infinity', '0'),
    ) as object;
    const sglang = await loadResults(
      writeFixture('impossible.jsonl', JSON.stringify({ ...line, mean_e2e_latency_ms: -1e308 })),
    );
    expect(sglang.issues.find(({ code }) => code === 'impossible_values')).toMatchObject({ count: 1 });
  });

  test("--save-detailed: figures recomputed from the requests equal numpy's and are stored next to the file's", async () => {
    const results = await loadResults(fixture('vllm-serve-detailed.json'));
    const file = json('vllm-serve-detailed.json');
    expect(results.importer).toBe('vllm-bench-serve');
    for (const [ourName, theirName] of latencies) {
      for (const statistic of ['mean', 'median', 'p90', 'p95', 'p99']) {
        expect(results.value(ourName, statistic)).toBe(file[`${statistic}_${theirName}_ms`]);
        expect(results.value(ourName, statistic, 'recomputed')).toBeCloseTo(
          file[`${statistic}_${theirName}_ms`]!,
          6,
        );
      }
    }
    // numpy's std has ddof 0: over 11 requests the sample's is √(11/10) of it.
    expect(results.value('ttft', 'sd', 'recomputed')).toBeCloseTo(
      file['std_ttft_ms']! * Math.sqrt(11 / 10),
      6,
    );
    expect(results.value('ttft', 'sd_population')).toBe(file['std_ttft_ms']);
    // Every chunk was a token here, so gaps of chunks are gaps of tokens, and only the recomputed name says so.
    expect(results.value('itl', 'p99', 'recomputed')).toBeCloseTo(file['p99_itl_ms']!, 6);
    expect(results.value('vllm.itl', 'p99')).toBe(file['p99_itl_ms']);
    expect(() => results.value('itl', 'p99', 'file')).toThrow();
    expect(codes(results)).not.toContain('recomputed_differs');
  });

  test('requests: times from start_times; a failure has no latency', async () => {
    const { requests, value } = await loadResults(fixture('vllm-serve-detailed.json'));
    const file = json('vllm-serve-detailed.json') as unknown as Record<string, number[]>;
    expect(requests).toHaveLength(12);
    expect(requests[0]).toMatchObject({
      sent_ns: 0,
      status: 'ok',
      ttft_ns: Math.round(file['ttfts']![0]! * 1e9),
    });
    expect(requests[3]).toMatchObject({
      status: 'failed',
      error: 'Traceback: ServerDisconnectedError',
      ttft_ns: null,
      end_ns: null,
      output_tokens: null,
      itl_ns: null,
    });
    expect(requests[5]).toMatchObject({ output_tokens: 1, tpot_ns: null });
    expect(requests[4]!.sent_ns).toBe(
      Math.round((file['start_times']![4]! - file['start_times']![0]!) * 1e9),
    );
    expect([value('completed', 'value'), value('failed', 'value')]).toEqual([11, 1]);
  });

  test("chat: the first chunk may be a role, so TTFT and TPOT keep the tool's names", async () => {
    const results = await loadResults(fixture('vllm-serve-chat-detailed.json'));
    expect(results.names()).not.toContain('ttft');
    expect(results.names()).not.toContain('tpot');
    expect(results.value('vllm.ttft', 'p99')).toBe(json('vllm-serve-chat-detailed.json')['p99_ttft_ms']);
    expect(results.value('e2e', 'mean', 'recomputed')).toBeGreaterThan(0);
    expect(results.requests.every(({ ttft_ns }) => ttft_ns === null)).toBe(true);
    expect(codes(results)).toContain('ttft_defined_otherwise');
  });

  test('speculative decoding: a chunk is not a token; TPOT counts tokens, and ITL is missing', async () => {
    const results = await loadResults(fixture('vllm-serve-speculative.json'));
    const file = json('vllm-serve-speculative.json');
    expect(results.value('tpot', 'mean', 'recomputed')).toBeCloseTo(file['mean_tpot_ms']!, 6);
    expect(results.names()).not.toContain('itl');
    expect(results.value('vllm.itl', 'mean')).toBeGreaterThan(2 * file['mean_tpot_ms']!);
    expect(results.issues.find(({ code }) => code === 'chunk_is_not_token')?.count).toBe(11);
    expect(results.value('vllm.spec_decode_acceptance_length', 'value')).toBe(2.9);
  });

  test('appended lines are points; one with only failures has no zeros', async () => {
    const results = await loadResults(fixture('vllm-serve-appended.json'));
    expect(results.metrics.map(({ label }) => label)).toContain('rate 4, concurrency 8');
    expect(results.value('ttft', 'p99', 'file', 0)).toBeGreaterThan(0);
    expect(results.names(1)).toEqual(['completed', 'duration', 'failed']);
    expect(results.value('failed', 'value', 'file', 1)).toBe(12);
    expect(codes(results)).toContain('all_requests_failed');
  });

  test('an older file: failures from num_prompts, goodput with its colon', async () => {
    const results = await loadResults(fixture('vllm-serve-2025.json'));
    expect(results.value('failed', 'value')).toBe(1);
    expect(results.value('vllm.request_goodput', 'value')).toBe(3.5);
    expect(results.names()).toContain('ttft');
  });

  test('reports a mean that disagrees with its requests', async () => {
    const file = json('vllm-serve-detailed.json') as Record<string, unknown>;
    const path = writeFixture('wrong.json', JSON.stringify({ ...file, mean_ttft_ms: 1 }));
    expect(codes(await loadResults(path))).toContain('recomputed_differs');
  });
});

test('vllm bench latency: seconds per batch, n − 1 deviation, percentiles of the file', async () => {
  const results = await loadResults(fixture('vllm-latency.json'));
  const file = json('vllm-latency.json') as unknown as {
    latencies: number[];
    percentiles: Record<string, number>;
  };
  expect(results.iterations).toHaveLength(30);
  const [, second] = results.iterations;
  expect(second!.end_ns! - second!.start_ns!).toBeCloseTo(file.latencies[1]! * 1e9, -1);
  expect(results.value('vllm.batch_latency', 'p99')).toBe(file.percentiles['99']! * 1000);
  expect(results.names()).toEqual(['vllm.batch_latency']);
  expect(codes(results)).toEqual(['moments_unknown']);
});

test('vllm bench throughput: its tokens/s is the total, and output tokens/s are unknown', async () => {
  const results = await loadResults(fixture('vllm-throughput.json'));
  expect(results.value('total_throughput', 'value')).toBe(12_800);
  expect(results.names()).not.toContain('output_throughput');
});

describe('sglang bench_serving', () => {
  test('reads bare Infinity, also next to a text "Infinity"', async () => {
    const results = await loadResults(fixture('sglang.jsonl'));
    expect(results.importer).toBe('sglang-bench-serving');
    // Results of one rate are distinguished by their place in the file.
    expect([...new Set(results.metrics.map(({ label }) => label))].slice(0, 2)).toEqual([
      'rate inf, result 1',
      'rate inf, result 2',
    ]);
    expect(parseLenient('{"a": Infinity, "b": "Infinity \\" NaN", "c": NaN, "d": -Infinity}')).toEqual({
      a: 'inf',
      b: 'Infinity " NaN',
      c: null,
      d: 'inf',
    });
  });

  test("its requests end with the stream: e2e and TPOT keep the tool's names; recomputed ones come from the details", async () => {
    const results = await loadResults(fixture('sglang.jsonl'));
    const vllm = json('vllm-serve-detailed.json');
    expect(results.names(0)).toContain('sglang.tpot');
    expect(results.names(0)).not.toContain('tpot');
    expect(results.value('sglang.e2e_latency', 'mean', 'file', 1)).toBeCloseTo(vllm['mean_e2el_ms']! + 2, 6);
    expect(results.value('e2e', 'mean', 'recomputed', 1)).toBeCloseTo(vllm['mean_e2el_ms']!, 6);
    expect(results.value('tpot', 'p99', 'recomputed', 1)).toBeCloseTo(vllm['p99_tpot_ms']!, 6);
    // Only the native protocol reports the tokens of each chunk.
    expect(results.names(0)).toContain('itl');
    expect(results.names(2)).toContain('sglang.itl');
    expect(results.names(2)).not.toContain('itl');
  });
});

describe('AIPerf', () => {
  test('summary: unit rules; inter_token_latency is TPOT, but its chunks are not tokens', async () => {
    const results = await loadResults(fixture('aiperf-profile_export_aiperf.json'));
    const file = json('aiperf-profile_export_aiperf.json') as unknown as Record<
      string,
      Record<string, number>
    >;
    expect(results.value('ttft', 'p99')).toBeCloseTo(file['time_to_first_token']!['p99']! / 1000, 9);
    expect(results.value('tpot', 'sd_population')).toBe(file['inter_token_latency']!['std']);
    expect(results.value('aiperf.inter_chunk_latency', 'mean')).toBe(file['inter_chunk_latency']!['avg']);
    expect(results.value('duration', 'value')).toBe(file['benchmark_duration']!['avg']);
    expect(results.value('aiperf.gpu_0.gpu_power_usage', 'max')).toBe(690);
    expect(results.names()).not.toContain('itl');
    expect(results.facts).toMatchObject({
      purpose: 'results',
      tool: { name: 'aiperf', version: '0.5.0' },
      software: { benchmark_model: 'org/model-1b' },
    });
  });

  test('requests: recomputed figures equal the summary without the warm-up, and ns since 1970 stay exact', async () => {
    const results = await loadResults(fixture('aiperf-profile_export.jsonl'));
    const summary = await loadResults(fixture('aiperf-profile_export_aiperf.json'));
    for (const name of ['ttft', 'tpot', 'e2e']) {
      for (const statistic of ['mean', 'median', 'p90', 'p99']) {
        expect(results.value(name, statistic, 'recomputed')).toBeCloseTo(summary.value(name, statistic), 6);
      }
    }
    expect(results.value('completed', 'value', 'recomputed')).toBe(10);
    expect(results.requests[0]).toMatchObject({ warmup: true, sent_ns: 0 });
    expect(results.requests[3]).toMatchObject({
      status: 'failed',
      error: 'HTTP 503: overloaded',
      ttft_ns: null,
    });
    expect(results.facts.realtime_zero_ns).toBe(1_759_813_207_532_900_363n);
    const later = await loadResults(fixture('aiperf-profile_export.jsonl'), 1_759_813_207_532_900_000n);
    expect(later.requests[0]!.sent_ns).toBe(363);
  });

  test('skips and reports a truncated last line; one in the middle is an error', async () => {
    const text = readFileSync(fixture('aiperf-profile_export.jsonl'), 'utf8');
    const cut = await loadResults(writeFixture('cut.jsonl', text.slice(0, -200)));
    expect(cut.requests).toHaveLength(11);
    expect(codes(cut)).toContain('last_line_cut_off');
    const lines = text.split('\n');
    const broken = writeFixture('broken.jsonl', [lines[0], lines[1]!.slice(0, 50), lines[2]].join('\n'));
    await expect(loadResults(broken)).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });
});

describe('GuideLLM', () => {
  test("its ITL is TPOT; its TPOT, latency and percentiles keep the tool's names", async () => {
    const results = await loadResults(fixture('guidellm-benchmarks.json'));
    const vllm = json('vllm-serve-detailed.json');
    expect(results.importer).toBe('guidellm');
    expect(results.value('tpot', 'mean')).toBeCloseTo(vllm['mean_tpot_ms']!, 6);
    expect(results.value('guidellm.time_per_output_token', 'mean')).toBeGreaterThan(
      vllm['mean_tpot_ms']! * 1.5,
    );
    expect(results.value('guidellm.request_latency', 'mean')).toBeCloseTo(vllm['mean_e2el_ms']! + 3, 6);
    expect(results.value('ttft', 'p99_step')).toBe(
      Math.max(...(vllm['ttfts'] as unknown as number[])) * 1000,
    );
    expect(
      results.metrics.filter(({ source }) => source!.startsWith('file')).map(({ statistic }) => statistic),
    ).not.toContain('p99');
    // The same requests as vLLM's file: inferscope's definitions give the same figures (epoch doubles are exact to
    // about 0.2 µs).
    expect(results.value('ttft', 'p99', 'recomputed')).toBeCloseTo(vllm['p99_ttft_ms']!, 2);
    expect(results.value('e2e', 'mean', 'recomputed')).toBeCloseTo(vllm['mean_e2el_ms']!, 2);
    expect(results.value('output_throughput', 'value', 'recomputed')).toBeCloseTo(
      vllm['output_throughput']!,
      6,
    );
  });

  test('count 0 means missing: the load point with only failures has no latency', async () => {
    const results = await loadResults(fixture('guidellm-benchmarks.json'));
    expect(results.names(1)).toEqual(['completed', 'duration', 'failed']);
    expect(results.metrics.find(({ point }) => point === 1)!.label).toBe('concurrent 16');
    expect(codes(results)).toContain('all_requests_failed');
    expect(results.requests.filter(({ status }) => status === 'failed').map(({ error }) => error)).toEqual([
      'HTTP 503',
      'HTTP 503',
    ]);
  });
});

test('llama-bench: tests by name and depth, repeats as iterations, and nothing is named TTFT', async () => {
  const results = await loadResults(fixture('llama-bench.json'));
  expect(results.metrics.map(({ label }) => label)).toEqual([
    'pp512',
    'pp512',
    'tg128 @ d512',
    'tg128 @ d512',
  ]);
  expect(results.names(0)).toEqual(['llama_bench.prompt_processing']);
  // 512 tokens in 74, 72 and 71 ms.
  const rates = [512 / 0.074, 512 / 0.072, 512 / 0.071];
  expect(results.value('llama_bench.prompt_processing', 'mean')).toBeCloseTo(
    rates.reduce((a, b) => a + b) / 3,
    6,
  );
  expect(results.iterations.map((row) => row.end_ns! - row.start_ns!).slice(0, 3)).toEqual([
    74e6, 72e6, 71e6,
  ]);
  // The second test started one second after the first.
  expect(results.iterations[3]).toMatchObject({
    start_ns: 1e9,
    input_len: 0,
    output_len: 128,
  });
  const [first, second] = JSON.parse(readFileSync(fixture('llama-bench.json'), 'utf8')) as object[];
  expect(
    (await loadResults(writeFixture('llama.jsonl', `${JSON.stringify(first)}\n${JSON.stringify(second)}\n`)))
      .iterations,
  ).toHaveLength(6);
});

test('optimum-benchmark: units to ms and bytes, one value has no deviation, a repeated list is reported', async () => {
  const results = await loadResults(fixture('optimum-benchmark_report.json'));
  const file = json('optimum-benchmark_report.json') as unknown as Record<
    string,
    Record<string, Record<string, number>>
  >;
  expect(results.importer).toBe('optimum-benchmark');
  expect(results.value('optimum.prefill_latency', 'p90', 'file', 1)).toBe(
    file['prefill']!['latency']!['p90']! * 1000,
  );
  expect(results.value('optimum.prefill_max_ram', 'max', 'file', 1)).toBeCloseTo(1_395_167_232, 0);
  // 9e-6 kWh × 3.6e6 J/kWh
  expect(results.value('optimum.prefill_energy_gpu', 'value', 'file', 1)).toBeCloseTo(32.4, 9);
  expect(
    results.metrics.filter(({ point, statistic }) => point === 0 && statistic === 'sd_population'),
  ).toEqual([]);
  expect(codes(results)).toEqual(['per_token_repeated']);
  expect(results.metrics.every(({ same_definition }) => !same_definition)).toBe(true);
});

test('counts duplicate results once; a second result in a format with one is an error', async () => {
  const line = JSON.stringify(json('vllm-serve.json'));
  const otherResult = JSON.stringify({ ...json('vllm-serve.json'), mean_ttft_ms: 99.5 });
  const twice = await loadResults(writeFixture('twice.json', `${line}\n${otherResult}\n${line}\n`));
  expect(twice.issues.find(({ code }) => code === 'results_repeated')).toMatchObject({ count: 1 });
  expect([...new Set(twice.metrics.map(({ point }) => point))]).toEqual([0, 1]);
  for (const name of ['guidellm-benchmarks.json', 'optimum-benchmark_report.json', 'vllm-latency.json']) {
    const result = JSON.stringify(json(name));
    await expect(loadResults(writeFixture(name, `${result}\n${result}\n`)), name).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
      parts: { why: expect.stringMatching(/\b2\b/) as string },
    });
  }
});

test('an impossible time drops the clock, not the file', async () => {
  const serve = await loadResults(
    writeFixture('long.json', JSON.stringify({ ...json('vllm-serve.json'), duration: 1e308 })),
  );
  expect(serve.facts.realtime_zero_ns).toBeNull();
  expect(serve.issues.find(({ code }) => code === 'impossible_values')).toMatchObject({ count: 1 });
  const guide = json('guidellm-benchmarks.json') as unknown as { benchmarks: object[] };
  const [first] = guide.benchmarks as { scheduler_metrics?: object }[];
  first!.scheduler_metrics = { ...first!.scheduler_metrics, request_start_time: 1e308 };
  const far = await loadResults(
    writeFixture(
      'far-guide.json',
      JSON.stringify({ ...guide, benchmarks: [{ ...first, start_time: 1e308 }] }),
    ),
  );
  expect(far.facts.realtime_zero_ns).toBeNull();
});

test('a truncated, empty or foreign file is an error with what, why and fix', async () => {
  const cut = writeFixture(
    'cut.json',
    readFileSync(fixture('vllm-serve-detailed.json'), 'utf8').slice(0, 1500),
  );
  await expect(loadResults(cut)).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  await expect(
    loadResults(writeFixture('none.json', '{"avg_latency": 1, "latencies": []}')),
  ).rejects.toMatchObject({
    code: 'E_TRACE_FILE',
  });
  await expect(loadResults(writeFixture('other.json', '{"request": 1}'))).rejects.toMatchObject({
    code: 'E_FORMAT_UNKNOWN',
  });
});
