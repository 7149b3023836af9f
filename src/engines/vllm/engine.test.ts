import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type BenchOrder, benchPoint, type BenchProgress } from '../../model/bench.js';
import type { EngineRequest } from '../../model/engine.js';
import { recordLineSchema } from '../../model/record.js';
import { batchSeconds, benchArguments, launchBench, requestLines } from './bench-command.js';
import { vllmEngine } from './engine.js';
import { placeModel, vllmConfig } from './place-model.js';
import { needVersion, versionParts } from './vllm-version.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-vllm-'));
afterAll(() => rmSync(root, { recursive: true }));

const asked = (change: Partial<EngineRequest> = {}) =>
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

describe('what prepare refuses', () => {
  test.each([
    [{ engineArgs: { via: 'grpc' } }, 'E_USAGE', 'via'],
    [{ url: 'http://x' }, 'E_USAGE', '--engine openai'],
    [{ threads: 4 }, 'E_USAGE', '--threads'],
    [{ model: 'no-such-model' }, 'E_MODEL_NOT_FOUND', '--model'],
    [{ python: join(root, 'no-python') }, 'E_ENGINE_MISSING', '--engine openai --url http://HOST:8000/v1'],
  ] as const)('%j: %s', async (change, code, fix) => {
    await expect(asked(change)).rejects.toMatchObject({ code, parts: { fix: expect.stringContaining(fix) } });
  });
});

test('versions: what is too old is told with what to type', () => {
  expect(versionParts('0.8.5.post1')).toEqual([0, 8]);
  expect(versionParts('0.1.dev10+gabc')).toBeNull();
  for (const version of ['0.11.0', '0.8.0', '1.0.0', '0.1.dev10'])
    needVersion('py', version, 8, 'vllm bench');
  expect(() => needVersion('py', '0.6.6', 8, 'vllm bench')).toThrow('vLLM 0.6.6 is too old for vllm bench');
});

describe('the model as vLLM gets it', () => {
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
  test('trained ones are named as they are', () => {
    const model = { name: 'm', source: 'facebook/opt-125m', config: null, weights: 'trained' as const };
    expect(placeModel(model, join(root, 'b'))).toBe('facebook/opt-125m');
    expect(existsSync(join(root, 'b'))).toBe(false);
  });
});

describe("vLLM's own commands", () => {
  const of = { model: '/m', weights: 'random' as const, tokenizer: null, output: '/o.json' };
  test('latency runs the batch; flags are those of vllm bench latency --help', () => {
    expect(benchArguments('latency', point, order, of).join(' ')).toBe(
      'bench latency --model /m --seed 3 --input-len 128 --output-len 64 --batch-size 4 --num-iters 5 --num-iters-warmup 6 ' +
        '--load-format dummy --disable-detokenize --skip-tokenizer-init --dtype float16 --enforce-eager ' +
        '--gpu-memory-utilization 0.8 --no-enable-prefix-caching --output-json /o.json',
    );
  });
  test('throughput runs as many prompts as the batch has, no more at a time', () => {
    const args = benchArguments('throughput', point, { ...order, dtype: null, engine_args: {} }, of);
    expect(args.join(' ')).toBe(
      'bench throughput --model /m --seed 3 --input-len 128 --output-len 64 --dataset-name random --num-prompts 4 ' +
        '--max-num-seqs 4 --load-format dummy --output-json /o.json',
    );
    const own = benchArguments('throughput', point, order, { ...of, tokenizer: '/t' });
    expect(own.join(' ')).toContain(' --tokenizer /t ');
  });
  test('seconds a batch of both files, and nothing of another', () => {
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
  test('batches are laid end to end up to the end of the process; the first token is not told', () => {
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
  test('a Python without vLLM fails the point with its own words, and ends well', async () => {
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
        tokenizer: null,
        device: 'cuda',
        place: () => root,
        // No site-packages, whatever this Python has installed.
        interpreterArgs: ['-S'],
      },
      order,
      {
        recordPath,
        scratch: root,
        signal: new AbortController().signal,
        onProgress: (one) => progress.push(one),
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
    expect(lines[2]).toMatchObject({
      outcome: 'failed',
      text: expect.stringContaining("No module named 'vllm'"),
    });
    expect(progress.at(-1)).toMatchObject({ type: 'point', outcome: 'failed' });
  });
});
