import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resolveModel } from '../../engines/onnx/model-source.js';
import { type RunningServer, serveModel } from '../../engines/onnx/server/serve-model.js';
import { openaiEngine } from '../../engines/openai/engine.js';
import { type BenchOrder, benchPoint } from '../../model/bench.js';
import { readServerMetrics } from '../../model/server-metrics.js';
import type { EngineRequest } from '../../model/engine.js';
import { openUrl } from './url.js';
import { isThisMachine, findListenerPid, listeningInodes } from './url-listener.js';
import {
  kvCapacityTokens,
  kvUsedTokens,
  metricsSource,
  readCacheConfig,
  startedWith,
} from './url-metrics.js';
import { readServerIdentity } from './url-server.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-url-'));
const request: EngineRequest = {
  model: '',
  weights: 'random',
  dtype: 'float16',
  device: 'cuda',
  threads: null,
  engineArgs: { gpu_memory_utilization: '0.9' },
  url: null,
  python: null,
};
const open = (url: string) =>
  openUrl({
    engine: null,
    request,
    container: null,
    url,
    scratch: folder,
    signal: new AbortController().signal,
    onProgress: () => {},
    loadEngine: async () => openaiEngine,
  });

let server: RunningServer;
beforeAll(async () => {
  const config = {
    model_type: 'llama',
    hidden_size: 32,
    intermediate_size: 64,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    vocab_size: 64,
    max_position_embeddings: 64,
  };
  const path = join(folder, 'config.json');
  writeFileSync(path, JSON.stringify(config));
  const model = await resolveModel(path, { cacheDir: join(folder, 'cache') });
  server = await serveModel(model, { host: '127.0.0.1', port: 0, threads: 1, contextLen: 64 });
});
afterAll(async () => {
  await server.drain();
  rmSync(folder, { recursive: true });
});

test('a server on this machine: its process, its requests as latencies, its metrics page', async () => {
  const url = `http://127.0.0.1:${server.port}`;
  const target = await open(url);
  expect(target).toMatchObject({ where: 'url', samplesHere: true, containerName: null, gpus: null });
  expect(target.pids!()).toContain(process.pid);
  // Flags for a started engine have no effect on a running one, and an issue says so.
  expect(target.prepared.workload.engine.options).not.toHaveProperty('gpu_memory_utilization');
  expect(target.issues.map(({ code }) => code)).toEqual(['server_decides', 'kv_capacity_unknown']);

  const launch = join(folder, 'launch');
  mkdirSync(launch);
  const recordPath = join(folder, 'record.jsonl');
  const order: BenchOrder = {
    v: 1,
    execution_id: 'memory',
    launch: 0,
    first_iteration: 0,
    model: '',
    weights: 'trained',
    dtype: null,
    device: null,
    engine_args: {},
    points: [benchPoint(['latency'], 2, 8, 4)],
    repeats: 2,
    warmup: { min: 1, max: 1, within: 1 },
    device_work: false,
    seed: 1,
  };
  const signal = new AbortController().signal;
  const sources = target.sources.map((source) =>
    source.start({ execution_id: 'memory', capture_id: 'memory-metrics', host: 'localhost' }),
  );
  const launched = target.prepared.launch(order, {
    recordPath,
    scratch: launch,
    signal,
    onProgress: () => {},
  });
  expect(launched.pid).toBe(process.pid);
  expect((await launched.ended).failure).toBeNull();
  const [rows] = await Promise.all(sources.map((source) => source.stop()));
  expect(rows!.issues).toEqual([]);
  const requests = readFileSync(recordPath, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['type'] === 'request' && line['warmup'] === false);
  expect(requests).toHaveLength(2);
  const [leftover] = await target.readLeftovers();
  expect(leftover).toMatchObject({ kind: 'metrics', name: 'metrics.prom' });
  // The page after the run, not before it.
  expect(leftover!.text).toMatch(/inferscope:generation_tokens_total\S* 2\d/);
  await target.close();
});

test('an unreachable server', async () => {
  await expect(open('http://127.0.0.1:1')).rejects.toMatchObject({ code: 'E_SERVER_UNREACHABLE' });
});

test('reads the KV pool of a recorded vLLM 0.32 server in tokens and bytes', () => {
  const page = readFileSync('test/fixtures/vllm-0.32.0-cpu/metrics.prom', 'utf8');
  const found = readCacheConfig(page)!;
  expect(found).toMatchObject({
    blocks: 4096,
    block_size: 128,
    tokens: 524_288,
    bytes: 2 ** 30,
    cache_dtype: 'auto',
  });
  expect(found.tokens).toBe(found.blocks! * found.block_size!);
  // From its cache_config_info line; the run stores them as engine arguments.
  expect(startedWith(found)).toEqual({
    gpu_memory_utilization: '0.92',
    kv_cache_dtype: 'auto',
    block_size: '128',
  });
  expect(startedWith(null)).toEqual({});
  expect(readServerMetrics(page)).toEqual({
    server: 'vLLM',
    // 45 requests of 32 tokens were sent: probes, warm-up and two loads of 16.
    reading: {
      requests_running: 0,
      requests_waiting: 0,
      kv_cache_usage_ratio: 0,
      prefix_cache_hits_total: 0,
      prefix_cache_queries_total: 45 * 32,
      preemptions_total: 0,
      prompt_tokens_total: 45 * 32,
      generation_tokens_total: 684,
    },
  });
});

test('reads the version of a vLLM server, and its model if it is on this machine', async () => {
  const root = join(folder, 'served');
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'config.json'), '{"model_type":"llama"}');
  // As answered by vLLM 0.32.
  const pages: Record<string, object> = {
    '/version': { version: '0.32.0' },
    '/v1/models': {
      object: 'list',
      data: [{ id: 'tiny', object: 'model', owned_by: 'vllm', root, max_model_len: 512 }],
    },
  };
  const answering = createServer((socket) => {
    socket.once('data', (data) => {
      const text = JSON.stringify(pages[data.toString().split(' ')[1]!] ?? {});
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`);
    });
  });
  await new Promise<void>((resolve) => answering.listen(0, '127.0.0.1', resolve));
  const { port } = answering.address() as AddressInfo;
  const base = new URL(`http://127.0.0.1:${port}/v1`);
  const config = { model_type: 'llama' };
  expect(await readServerIdentity(base, 'tiny', true)).toEqual({ version: '0.32.0', config });
  expect(await readServerIdentity(base, 'tiny', false)).toEqual({ version: '0.32.0', config: null });
  expect(await readServerIdentity(base, 'other', true)).toEqual({ version: '0.32.0', config: null });
  answering.close();
  expect(await readServerIdentity(base, 'tiny', true)).toEqual({ version: null, config: null });
});

describe("vLLM's page", () => {
  const page = [
    '# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig',
    'vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",gpu_memory_utilization="0.9",num_cpu_blocks="None",num_gpu_blocks="8505",sliding_window="None"} 1.0',
    'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25',
    'vllm:num_preemptions_total{engine="0",model_name="m"} 3.0',
  ].join('\n');

  test('reads blocks and used blocks', async () => {
    expect(readCacheConfig(page)).toEqual({
      blocks: 8505,
      block_size: 16,
      tokens: null,
      bytes: null,
      gpu_memory_utilization: 0.9,
      cache_dtype: 'auto',
      engine_tokens: new Map([['0', 8505 * 16]]),
    });
    expect(kvUsedTokens(readCacheConfig(page), page)).toBe(0.25 * 8505 * 16);
    // A second data-parallel engine with a smaller cache in less use.
    const second = page
      .replace('8505', '8500')
      .replaceAll('engine="0"', 'engine="1"')
      .replace('0.25', '0.125');
    const both = `${page}\n${second}`;
    expect(readCacheConfig(both)!.blocks).toBe(17_005);
    expect(kvCapacityTokens(readCacheConfig(both))).toBe(17_005 * 16);
    expect(kvUsedTokens(readCacheConfig(both), both)).toBe((0.25 * 8505 + 0.125 * 8500) * 16);
    expect(kvUsedTokens(readCacheConfig(page), both)).toBeNull();
    expect(kvUsedTokens(readCacheConfig(page), 'vllm:num_requests_running 0')).toBeNull();
    expect(kvCapacityTokens(readCacheConfig(page))).toBe(8505 * 16);
    expect(kvCapacityTokens(readCacheConfig(page.replace('"8505"', '"None"')))).toBeNull();
    expect(readCacheConfig('vllm:num_requests_running 0')).toBeNull();
    const answering = createServer((socket) => {
      socket.once('data', () => {
        socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${page.length}\r\nconnection: close\r\n\r\n${page}`);
      });
    });
    await new Promise<void>((resolve) => answering.listen(0, '127.0.0.1', resolve));
    const { port } = answering.address() as AddressInfo;
    const savedPaths: string[] = [];
    const source = metricsSource(
      `http://127.0.0.1:${port}/metrics`,
      'vLLM',
      readCacheConfig(page),
      (text) => void savedPaths.push(text),
    );
    const { telemetry } = await source.start({ execution_id: 'e', capture_id: 'c', host: 'h' }).stop();
    answering.close();
    const valuesOf = (metric: string) =>
      telemetry.filter((row) => row.metric === metric).map(({ value }) => value);
    expect(valuesOf('kv_cache_total_tokens')).toEqual([8505 * 16]);
    expect(new Set(valuesOf('kv_cache_used_tokens'))).toEqual(new Set([0.25 * 8505 * 16]));
    expect(new Set(valuesOf('preemptions_total'))).toEqual(new Set([3]));
    expect(savedPaths.at(-1)).toBe(page);
  });
});

describe('owner of a port', () => {
  test('finds the process that listens, by its socket', async () => {
    const listening = createServer();
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const { port } = listening.address() as AddressInfo;
    expect(findListenerPid(port)).toBe(process.pid);
    listening.close();
  });

  test('reads listening sockets of /proc/net/tcp, not connected ones', () => {
    const table = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 424242 1 0000000000000000 100 0 0 10 0',
      '   1: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 424243 1 0000000000000000 20 4 30 10 -1',
    ].join('\n');
    expect(listeningInodes(table, 8000)).toEqual(['424242']);
    expect(listeningInodes(table, 8001)).toEqual([]);
  });

  test('distinguishes names of this machine from others', async () => {
    expect(await isThisMachine('127.0.0.1')).toBe(true);
    expect(await isThisMachine('localhost')).toBe(true);
    expect(await isThisMachine('[::1]')).toBe(true);
    expect(await isThisMachine('192.0.2.1')).toBe(false);
  });
});
