import { Command } from 'commander';
import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import type { EngineName } from '../model/engine.js';
import { defineMemoryOptions, parseParameterCount, type MemoryOptions } from './memory-options.js';
import { stampOf } from '../model/result-names.js';
import { defaultProfilePath } from './memory-output.js';
import { engineRequest, memoryRequest } from './memory-request.js';

const shape = ['--model', 'x', '--input-len', '8', '--output-len', '4'];

function options(...args: string[]): MemoryOptions {
  const command = defineMemoryOptions(new Command().exitOverride().configureOutput({ writeErr: () => {} }));
  return command.parse(args, { from: 'user' }).opts<MemoryOptions>();
}

function requestOf(engine: EngineName | null, ...args: string[]) {
  const all = options(...shape, ...args);
  return engineRequest(all, memoryRequest(all), engine);
}

function errorOf(act: () => unknown): { code: string; what: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof InferscopeError) return { code: error.code, what: error.parts.what };
    throw error;
  }
  throw new Error('it was not rejected');
}

test("vLLM gets every flag under vLLM's name, and the defaults of the command", () => {
  const quantized = ['--quantization', 'awq', '--kv-cache-dtype', 'fp8'];
  const sized = ['--tensor-parallel-size', '2', '--max-model-len', '4096'];
  const { request } = requestOf('vllm', ...quantized, ...sized, '--engine-arg', 'enforce_eager=true');
  expect(request).toMatchObject({
    dtype: 'float16',
    weights: null,
    engineArgs: {
      enforce_eager: 'true',
      tensor_parallel_size: '2',
      gpu_memory_utilization: '0.9',
      max_model_len: '4096',
      quantization: 'awq',
      kv_cache_dtype: 'fp8',
    },
  });
});

test('an engine argument overrides the flag of the same name', () => {
  const { request, config } = requestOf('vllm', '--engine-arg', 'gpu_memory_utilization=0.5');
  expect(request.engineArgs['gpu_memory_utilization']).toBe('0.5');
  // The profile states what ran: validate compares the KV pool with it.
  expect(config).toMatchObject({ gpu_memory_utilization: 0.5, dtype: 'float16', tensor_parallel_size: 1 });
});

test('transformers splits a model over GPUs; flags of memory that vLLM reserves have no effect', () => {
  const { request, issues } = requestOf('transformers', '--tensor-parallel-size', '2');
  expect([request.engineArgs, issues]).toEqual([{ tensor_parallel_size: '2' }, []]);
  for (const flag of [
    ['--gpu-memory-utilization', '0.8'],
    ['--max-model-len', '8192'],
  ]) {
    const reported = requestOf('transformers', ...flag).issues;
    expect(reported).toMatchObject([
      { code: 'flag_without_effect', text: `${flag[0]} has no effect: transformers allocates on demand.` },
    ]);
    expect(requestOf('vllm', ...flag).issues).toEqual([]);
  }
});

test('the embedded engine uses its default dtype without --dtype', () => {
  expect(requestOf('onnx').request.dtype).toBeNull();
  expect(requestOf('onnx', '--dtype', 'fp32').request.dtype).toBe('float32');
  expect(requestOf('onnx').config.dtype).toBe('float32');
  expect(requestOf('onnx', '--dtype', 'int4').config.dtype).toBe('int4');
  // A server computes in the dtype it was started with.
  expect(requestOf(null, '--url', 'http://h/v1').config.dtype).toBeNull();
});

test('weights: load is an alias of trained', () => {
  expect(options('--weights', 'load').weights).toBe('trained');
  expect(errorOf(() => options('--weights', 'some')).what).toContain('--weights some');
});

test.each<[EngineName | null, string[], string, string]>([
  ['onnx', ['--kv-cache-dtype', 'fp8'], 'E_USAGE', '--kv-cache-dtype fp8 does not work with --engine onnx'],
  ['onnx', ['--tensor-parallel-size', '2'], 'E_USAGE', '--tensor-parallel-size 2'],
  ['transformers', ['--kv-cache-dtype', 'fp8'], 'E_USAGE', '--kv-cache-dtype fp8'],
  ['vllm', ['--engine-arg', 'block_size=16,32'], 'E_USAGE', '2 variants'],
  ['vllm', ['--container', 'c', '--url', 'http://h/v1'], 'E_USAGE', '--container and --url'],
  [
    'vllm',
    ['--max-model-len', '11'],
    'E_LENGTHS',
    '--input-len 8 and --output-len 4 exceed --max-model-len 11',
  ],
  ['vllm', ['--dtype', 'float12'], 'E_DTYPE', 'unknown dtype "float12"'],
  ['vllm', ['--timeout', '0'], 'E_USAGE', '--timeout 0'],
])('%s %j is rejected', (engine, args, code, what) => {
  const error = errorOf(() => requestOf(engine, ...args));
  expect(error.code).toBe(code);
  expect(error.what).toContain(what);
});

test.each([
  ['7000000000', 7e9],
  ['7B', 7e9],
  ['1.1b', 1.1e9],
  ['350M', 350e6],
  ['6.7e9', 6.7e9],
])('--model-params %s', (text, count) => {
  expect(parseParameterCount(text)).toBe(count);
});

test('rejects invalid --model-params', () => {
  expect(errorOf(() => parseParameterCount('seven')).what).toContain('seven');
});

test("the profile's file name has the model and a UTC timestamp", () => {
  const time = new Date('2026-11-21T09:30:12.345Z');
  expect(stampOf(time)).toBe('20261121-093012');
  const path = (model: string) => defaultProfilePath(model, time).replaceAll('\\', '/');
  expect(path('Qwen/Qwen2.5-7B')).toBe(
    'results/memory-profiles/Qwen_Qwen2.5-7B-profile_20261121-093012.json',
  );
  expect(path('/models/my-llama/config.json')).toBe(
    'results/memory-profiles/my-llama-profile_20261121-093012.json',
  );
});
