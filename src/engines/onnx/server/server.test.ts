import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testFolder } from '../../../session/test-folder.js';
import { openDecoder } from '../decoder.js';
import { startDecoder } from './decoder-thread.js';
import { resolveModel } from '../model-source.js';
import type { OnnxModel } from '../onnx-model.js';
import { argmax } from '../sampling.js';
import { detokenizer } from './detokenizer.js';
import { requestGuard } from '../../../model/request-guard.js';
import { serveModel, type RunningServer } from './serve-model.js';
import { wordCodec } from './word-codec.js';

const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_act: 'silu',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  vocab_size: 512,
  max_position_embeddings: 256,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  eos_token_id: 2,
};

const folder = testFolder();
let model: OnnxModel;
let server: RunningServer;
let url: string;

beforeAll(async () => {
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify(config));
  model = await resolveModel(path, { cacheDir: join(folder, 'cache') });
  server = await serveModel(model, { host: '127.0.0.1', port: 0, threads: 1, contextLen: 128 });
  url = `http://127.0.0.1:${server.port}`;
});
afterAll(() => server.drain());

async function post(path: string, body: object): Promise<{ status: number; json: never }> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ temperature: 0, ignore_eos: true, ...body }),
  });
  return { status: response.status, json: (await response.json()) as never };
}

interface Completion {
  choices: { text: string; message: { content: string }; finish_reason: string }[];
  usage: object;
}

test('greedy completions equal the tokens of a direct decoder call', async () => {
  const codec = wordCodec(512);
  const prompt = 'one two three';
  const decoder = await openDecoder(model, { threads: 1, contextLen: 128 });
  const expected: number[] = [];
  let { logits } = await decoder.prefill([codec.encode(prompt)]);
  for (let i = 0; i < 6; i++) {
    const token = argmax(logits, 1)[0]!;
    expected.push(token);
    logits = (await decoder.decode([token])).logits;
  }
  await decoder.release();
  const { json } = await post('/v1/completions', { prompt, max_tokens: 6 });
  const { choices, usage } = json as Completion;
  expect(choices[0]).toMatchObject({ text: codec.decode(expected), finish_reason: 'length' });
  expect(codec.encode(choices[0]!.text)).toEqual(expected);
  expect(usage).toEqual({ prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 });

  // Chat is the same computation over the messages as text.
  const chat = (await post('/v1/chat/completions', {
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 3,
  })) as { json: Completion };
  const plain = (await post('/v1/completions', { prompt: 'user: hello', max_tokens: 3 })) as {
    json: Completion;
  };
  expect(chat.json.choices[0]!.message.content).toBe(plain.json.choices[0]!.text);

  // Output ends before a stop string, even one that spans tokens.
  const [, second] = choices[0]!.text.trim().split(' ');
  const stopped = (await post('/v1/completions', { prompt, max_tokens: 6, stop: ` ${second}` })) as {
    json: Completion;
  };
  expect(stopped.json.choices[0]).toMatchObject({
    text: ` ${choices[0]!.text.trim().split(' ')[0]}`,
    finish_reason: 'stop',
  });
});

test('streams one event per token, usage and [DONE]; concurrent requests run one after the other', async () => {
  async function stream(): Promise<string[]> {
    const body = { prompt: 'a b', max_tokens: 5, stream: true, stream_options: { include_usage: true } };
    const response = await fetch(`${url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ temperature: 0, ignore_eos: true, ...body }),
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    return [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);
  }
  const [first, second] = await Promise.all([stream(), stream()]);
  expect(first.at(-1)).toBe('[DONE]');
  const events = first.slice(0, -1).map((data) => JSON.parse(data) as Completion);
  expect(events.filter(({ choices }) => choices[0]?.text)).toHaveLength(5);
  expect(events.at(-2)!.choices[0]!.finish_reason).toBe('length');
  expect(events.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 5, prompt_tokens: 2 } });
  const texts = (all: string[]) =>
    all.slice(0, -2).map((data) => (JSON.parse(data) as Completion).choices[0]!.text);
  expect(texts(second)).toEqual(texts(first));
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(/^inferscope:num_requests_running\{model_name="[^"]+"\} 0$/m);
  expect(
    Number(/^inferscope:generation_tokens_total\{.*\} (\d+)$/m.exec(metrics)![1]),
  ).toBeGreaterThanOrEqual(10);
});

test('answers of any length and order equal those with a fresh cache', async () => {
  const answer = async (max_tokens: number) => {
    const body = { prompt: 'a b c', max_tokens, temperature: 0, ignore_eos: true };
    return ((await post('/v1/completions', body)).json as Completion).choices[0]!.text;
  };
  const [short, long, repeated] = [await answer(3), await answer(60), await answer(3)];
  expect(repeated).toBe(short);
  expect(long.startsWith(short)).toBe(true);
});

test('rejects unsupported requests instead of ignoring them', async () => {
  const refused = async (body: object) => {
    const { status, json } = await post('/v1/completions', { prompt: 'a', max_tokens: 2, ...body });
    return [status, (json as { error: { message: string } }).error.message];
  };
  expect(await refused({ n: 2, top_p: 0.9 })).toEqual([400, 'Unsupported parameters: n, top_p.']);
  expect(await refused({ prompt: '' })).toEqual([400, 'The prompt has no token.']);
  expect(await refused({ prompt: [600] })).toEqual([
    400,
    'Token ids must be below 512, the size of the vocabulary.',
  ]);
  expect((await refused({ max_tokens: 128 }))[1]).toBe(
    'The prompt (1 token) and max_tokens (128) exceed the context of 128 tokens.',
  );
  expect((await refused({ model: 'gpt-4' }))[0]).toBe(404);
  expect((await refused({ max_tokens: 0 }))[1]).toContain('max_tokens');
  expect((await refused({ prompt: undefined }))[1]).toMatch(/^prompt: It must be one text/);
  expect((await post('/v1/embeddings', {})).status).toBe(404);
  const wrongMethod = await fetch(`${url}/v1/completions`);
  expect([wrongMethod.status, await wrongMethod.text()]).toEqual([405, expect.stringContaining('use POST')]);
  expect(await (await fetch(`${url}/health`)).text()).toBe('ok');
});

/**
 * Sends these headers unchanged; fetch sets Host and Content-Length itself.
 * @param body null sends none
 */
function raw(
  method: string,
  headers: Record<string, string>,
  body: Buffer | null,
): Promise<{ status: number }> {
  return new Promise((resolve, reject) => {
    const path = method === 'POST' ? '/v1/completions' : '/v1/models';
    const sent = request({ host: '127.0.0.1', port: server.port, method, path, headers, agent: false });
    sent.on('response', (answer) => {
      resolve({ status: answer.statusCode! });
      sent.destroy();
    });
    sent.on('error', reject);
    if (body === null) sent.flushHeaders();
    else sent.end(body);
  });
}

test('rejects a body larger than any prompt, declared or streamed', async () => {
  const json = { 'content-type': 'application/json' };
  const declared = await raw('POST', { ...json, 'content-length': '1500000000' }, null);
  expect(declared.status).toBe(413);
  const streamed = await raw(
    'POST',
    { ...json, 'transfer-encoding': 'chunked' },
    Buffer.alloc(9 * 2 ** 20, 'a'),
  );
  expect(streamed.status).toBe(413);
  expect((await post('/v1/completions', { prompt: 'a', max_tokens: 1 })).status).toBe(200);
});

test('rejects requests made by a page of another site in a browser', async () => {
  const get = async (host: string, more: object = {}) => (await raw('GET', { host, ...more }, null)).status;
  const [ownHost, otherHost] = [`127.0.0.1:${server.port}`, 'evil.example'];
  expect(await Promise.all([get(ownHost), get('localhost'), get('[::1]:80'), get('127.9.9.9')])).toEqual(
    Array(4).fill(200),
  );
  expect(await Promise.all([get(otherHost), get('127.0.0.1.evil.example'), get('169.254.169.254')])).toEqual(
    Array(3).fill(403),
  );
  expect(await get(ownHost, { origin: `http://${ownHost}` })).toBe(200);
  expect(await get(ownHost, { origin: `http://${otherHost}` })).toBe(403);
  expect(await get(ownHost, { origin: 'null' })).toBe(403);
  const body = Buffer.from(JSON.stringify({ prompt: 'a', max_tokens: 1 }));
  const posted = async (type: string) => (await raw('POST', { 'content-type': type }, body)).status;
  expect(await posted('text/plain')).toBe(415);
  expect(await posted('application/x-www-form-urlencoded')).toBe(415);
  expect(await posted('application/json; charset=utf-8')).toBe(200);
});

test('on all interfaces, IP addresses are served and foreign names are not', async () => {
  const guard = async (host: string, requestHost: string) => {
    const app = new Hono();
    app.use(requestGuard(host, ({ status }) => new Response(null, { status })));
    app.get('/', (context) => context.text('ok'));
    return (await app.request(`http://${requestHost}/`)).status;
  };
  expect(
    await Promise.all(
      ['192.0.2.7:8000', '[fd00::7]', 'localhost'].map((requestHost) => guard('0.0.0.0', requestHost)),
    ),
  ).toEqual([200, 200, 200]);
  expect(await guard('0.0.0.0', 'evil.example')).toBe(403);
  expect(await guard('gpu-box.lan', 'gpu-box.lan:8000')).toBe(200);
  expect(await guard('192.0.2.7', '192.0.2.8')).toBe(403);
});

test('stops generating when the client disconnects', async () => {
  const controller = new AbortController();
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'a', max_tokens: 120, stream: true, ignore_eos: true, temperature: 0 }),
    signal: controller.signal,
  });
  await response.body!.getReader().read();
  controller.abort();
  await post('/v1/completions', { prompt: 'a', max_tokens: 1 });
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(/finished_reason="abort"\} 1$/m);
});

test('this thread runs while the model computes, so requests count from their arrival', async () => {
  const decoder = await startDecoder({ model, options: { threads: 1, contextLen: 128 } });
  let turns = 0;
  let computing = true;
  const count = () => {
    turns++;
    if (computing) setImmediate(count);
  };
  setImmediate(count);
  const logits = await decoder.prefill(
    Array.from({ length: 100 }, () => 3),
    101,
  );
  computing = false;
  await decoder.release();
  expect(logits).toHaveLength(512);
  // A call on this thread blocks it: one turn before it, one after.
  expect(turns).toBeGreaterThan(10);
});

test('errors of the thread keep their code', async () => {
  const start = (change: Partial<OnnxModel>, contextLen: number) =>
    startDecoder({ model: { ...model, ...change }, options: { threads: 1, contextLen } });
  await expect(start({ modelPath: '/no/model.onnx' }, 128)).rejects.toMatchObject({ code: 'E_MODEL_FILE' });
  await expect(start({ maxContext: 64 }, 128)).rejects.toMatchObject({ code: 'E_LENGTHS' });
  const decoder = await start({}, 8);
  await expect(decoder.prefill([1, 2, 3], 2)).rejects.toMatchObject({ code: 'E_LENGTHS' });
  await decoder.release();
});

test('draining finishes running requests and accepts no new ones', async () => {
  const draining = await serveModel(model, { host: '127.0.0.1', port: 0, threads: 1, contextLen: 128 });
  const running = fetch(`http://127.0.0.1:${draining.port}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'a', max_tokens: 100, ignore_eos: true, temperature: 0 }),
  }).then((response) => response.json() as Promise<{ usage: { completion_tokens: number } }>);
  while (draining.pending() === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await draining.drain();
  expect((await running).usage.completion_tokens).toBe(100);
  await expect(fetch(`http://127.0.0.1:${draining.port}/health`)).rejects.toThrow('fetch failed');
});

test('words and tokens: generated text encodes to the same tokens', () => {
  for (const vocabSize of [10, 80, 512, 32_000]) {
    const codec = wordCodec(vocabSize);
    const tokens = [0, 1, vocabSize - 1, Math.floor(vocabSize / 2)];
    expect(codec.encode(codec.decode(tokens))).toEqual(tokens);
    for (const token of codec.encode('Any words, with punctuation!')) expect(token).toBeLessThan(vocabSize);
  }
});

test('waits for both tokens of a character, and holds back a stop string across tokens', () => {
  // Bytes as tokens, the fallback of byte-level BPE.
  const bytes = {
    encode: (text: string) => [...Buffer.from(text)],
    decode: (tokens: ArrayLike<number>) => Buffer.from(Array.from(tokens)).toString('utf8'),
  };
  const plain = detokenizer(bytes, []);
  expect([...Buffer.from('né!')].map((token) => plain.push(token))).toEqual(['n', '', 'é', '!']);
  const stopping = detokenizer(bytes, ['END']);
  const tokens = [...Buffer.from('aEbENDc')].map((token) =>
    stopping.stopped() ? 'after' : stopping.push(token),
  );
  expect(tokens).toEqual(['', '', 'a', 'E', 'b', '', 'after']);
  expect(stopping.flush()).toBe('');
});
