import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import { identify } from '../identify.js';
import { vllmLogImporter } from './importer.js';
import { parseVllmLines, parseVllmLog } from './parse.js';
import { readLog } from './read-log.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-vllm-log-'));
afterAll(() => rmSync(root, { recursive: true }));
const fixture = (name: string) => `test/fixtures/vllm-logs/${name}.log`;
const writeLog = (text: string) => {
  const path = join(root, 'vllm.log');
  writeFileSync(path, text);
  return path;
};

async function load(path: string, redact?: (text: string) => string) {
  const memory: Row<'memory'>[] = [];
  const metrics: Row<'metrics'>[] = [];
  const telemetry: Row<'telemetry'>[] = [];
  const rows = { memory, metrics, telemetry } as Record<string, object[]>;
  const append = (table: string, row: object) => void rows[table]!.push(row);
  const { issues, clock } = await vllmLogImporter.load(
    path,
    { sink: { append: append as never } },
    {
      execution_id: 'e',
      capture_id: 'vllm',
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: null },
      ...(redact ? { redact } : {}),
    },
  );
  return { memory, metrics, telemetry, issues, clock };
}

test('recognizes logs of every generation by content', async () => {
  for (const name of [
    'v0.4.2-opt-125m',
    'v0.6.4-h200',
    'v0.7.3-negative',
    'v0.9.2-qwen3-8b-a100',
    'v0.11-two-ranks-h200',
    'v0.27.1-two-ranks',
    'v0.32.0-cpu',
    'v0.32.0-cpu-server',
  ])
    expect((await identify(fixture(name))).name).toBe('vllm-log');
  expect((await identify('test/fixtures/nvidia-smi-580-h200/nvidia-smi-dmon-all.txt')).name).not.toBe(
    'vllm-log',
  );
  expect((await identify('test/fixtures/cublas-cuda13.0-h200/cublas.log')).name).not.toBe('vllm-log');
});

test('reads the figures of a log that starts after the configuration line', async () => {
  const path = fixture('v0.11-two-ranks-h200');
  const { memory, metrics, issues } = await load(path);
  expect(memory.filter(({ kind }) => kind === 'weights').map(({ rank, bytes }) => [rank, bytes])).toEqual([
    [0, Math.round(74.28 * 2 ** 30)],
    [1, Math.round(74.28 * 2 ** 30)],
  ]);
  expect(metrics.find(({ name }) => name === 'vllm.max_concurrency')!.value).toBe(14.77);
  expect(issues.map(({ code }) => code)).toEqual(['vllm_no_start']);
  expect(await vllmLogImporter.facts(path)).toMatchObject({ tool: { name: 'vLLM', version: null } });
});

test('sizes in bytes with their line and its time; numbers by name', async () => {
  const { memory, metrics, issues } = await load(fixture('v0.9.2-qwen3-8b-a100'));
  expect(memory.map(({ kind, bytes, device, rank }) => [kind, bytes, device, rank])).toEqual([
    ['weights', Math.round(15.2683 * 2 ** 30), 0, 0],
    ['kv_cache', Math.round(18.69 * 2 ** 30), 0, 0],
    ['cuda_graphs', Math.round(2.24 * 2 ** 30), 0, 0],
  ]);
  // From 10:57:31, the first line, to 10:57:57 and 10:58:13.
  expect(memory.map(({ t_ns }) => t_ns! / 1e9)).toEqual([26, 42, 66]);
  expect(memory[0]!.source).toContain('Model loading took 15.2683 GiB');
  const value = (name: string) => metrics.find((metric) => metric.name === name);
  expect(value('vllm.kv_cache_tokens')).toMatchObject({ value: 136_080, unit: 'tokens', label: 'engine' });
  expect(value('vllm.max_concurrency')).toMatchObject({
    value: 3.32,
    definition: 'requests of 40\u00a0960 tokens that fit concurrently',
  });
  expect(value('vllm.weights')).toMatchObject({ unit: 'GiB', label: 'rank 0', same_definition: false });
  expect(issues).toEqual([]);
  const { tool, software } = await vllmLogImporter.facts(fixture('v0.9.2-qwen3-8b-a100'));
  expect(tool).toEqual({ name: 'vLLM', version: '0.9.2' });
  expect(software).toMatchObject({
    vllm_model: 'Qwen/Qwen3-8B',
    vllm_dtype: 'bfloat16',
    vllm_quantization: 'none',
  });
});

test('skipped lines have no information: the facts equal those of the whole text', async () => {
  for (const name of readdirSync('test/fixtures/vllm-logs').filter((file) => file.endsWith('.log'))) {
    const path = `test/fixtures/vllm-logs/${name}`;
    const { lines } = await readLog(path);
    expect(parseVllmLines(lines)).toEqual(parseVllmLog(readFileSync(path, 'utf8')));
  }
});

test('four ranks: each on its GPU', async () => {
  const { memory, metrics } = await load(fixture('2026-four-ranks-qwen3-235b-fp8'));
  const kv = memory.filter(({ kind }) => kind === 'kv_cache');
  expect(kv.map(({ device, pid }) => [device, pid])).toEqual([
    [0, 770],
    [1, 771],
    [2, 772],
    [3, 773],
  ]);
  expect(metrics.find(({ name }) => name === 'vllm.activation_peak')!.definition).toContain('CUDA graphs');
});

test('statistics of a running server', async () => {
  const { telemetry } = await load(
    writeLog(
      [
        'INFO 12-31 23:59:50 [loggers.py:137] Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 100',
        '(APIServer pid=4) INFO 12-31 23:59:55 [loggers.py:282] Engine 000: Avg prompt throughput: 115.2 tokens/s, Avg generation throughput: 29.5 tokens/s, Running: 1 reqs, Waiting: 2 reqs, GPU KV cache usage: 2.6%, Prefix cache hit rate: 43.8%',
        '(APIServer pid=4) INFO 01-01 00:00:05 [loggers.py:282] Engine 001: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 30.0 tokens/s, Running: 1 reqs, Pending: 0 reqs, GPU KV cache usage: 12.5%, CPU KV cache usage: 0.0%.',
      ].join('\n'),
    ),
  );
  const series = (metric: string, scope = 'server') =>
    telemetry
      .filter((row) => row.metric === metric && row.scope === scope)
      .map(({ value, t_ns }) => [t_ns! / 1e9, value]);
  expect(series('prompt_tokens_per_s')).toEqual([[5, 115.2]]);
  expect(series('requests_waiting')).toEqual([[5, 2]]);
  expect(series('kv_cache_usage_ratio')[0]![1]).toBeCloseTo(0.026, 9);
  expect(series('kv_cache_usage_ratio', 'server1')).toEqual([[15, 0.125]]);
});

test('a long log: lines across chunks, carriage returns, and a secret in a stored line', async () => {
  const bar = Array.from({ length: 20_000 }, (_, i) => `Processed prompts: ${i} [00:00<00:01]\r`).join('');
  const text = readFileSync(fixture('v0.22.0-qwen2.5-7b'), 'utf8').replaceAll('/model/', '/sk-secret/');
  const { memory } = await load(writeLog(`${bar}\n${text}${bar}`), (text) =>
    text.replaceAll('sk-secret', '***'),
  );
  expect(memory.map(({ kind }) => kind)).toEqual([
    'weights',
    'kv_cache',
    'cuda_graphs',
    'cuda_graphs_estimate',
  ]);
  expect(JSON.stringify(memory)).not.toContain('sk-secret');
});

test('client keys, which a server prints with its arguments, are secrets', async () => {
  const secretsOf = (line: string) => vllmLogImporter.secrets(writeLog(line));
  expect(
    await secretsOf(
      "INFO 06-10 [cli_args.py:325] non-default args: {'port': 1, 'api_key': ['first-key', 'second-key'], 'hf_token': 'hf_third'}",
    ),
  ).toEqual(['first-key', 'second-key', 'hf_third']);
  expect(
    await secretsOf(
      "INFO 04-15 api_server.py:150] args: Namespace(host=None, api_key='fourth', ssl_keyfile=None)",
    ),
  ).toEqual(['fourth']);
  expect(await secretsOf('INFO 04-15 api_server.py:150] args: Namespace(host=None, api_key=None)')).toEqual(
    [],
  );
});

describe('unusable logs', () => {
  test('a log without memory figures is an error', async () => {
    const log = readFileSync(fixture('v0.4.2-opt-125m'), 'utf8').split('\n')[0]!;
    await expect(load(writeLog(log))).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
      parts: { why: expect.stringContaining('VLLM_LOGGING_LEVEL') },
    });
  });
  test('imports a failed engine start with its reason', async () => {
    const { issues, memory } = await load(fixture('v0.7.3-negative'));
    expect(issues).toContainEqual(
      expect.objectContaining({
        code: 'vllm_refused',
        severity: 'error',
        text: expect.stringContaining('No available memory'),
      }),
    );
    expect(memory.find(({ kind }) => kind === 'kv_cache')!.bytes).toBeLessThan(0);
  });
  test('a file that does not exist is an error', async () => {
    await expect(load(join(root, 'none'))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });
});

test('a server on a CPU: its statistics every ten seconds', async () => {
  const { telemetry, memory } = await load(fixture('v0.32.0-cpu-server'));
  const series = (metric: string) =>
    telemetry.filter((row) => row.metric === metric).map(({ value }) => value);
  expect(series('requests_waiting')).toEqual([4, 0, 0, 0, 0, 0]);
  expect(series('requests_running')[0]).toBe(3);
  // 4 of its 4096 blocks, as printed.
  expect(series('kv_cache_usage_ratio')[0]).toBeCloseTo(0.001, 12);
  expect(series('generation_tokens_per_s')).toEqual([38, 44.6, 0, 19.2, 0, 8.4]);
  expect(memory.map(({ kind }) => kind)).toEqual(['kv_cache', 'device_total']);
});
