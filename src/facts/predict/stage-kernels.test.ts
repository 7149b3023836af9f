import { expect, test } from 'vitest';
import { readArchitecture } from '../../llm/read-architecture.js';
import { findPreset } from '../../llm/presets.js';
import { floatStorage } from '../../llm/storage.js';
import { tinyConfig } from '../test-session.js';
import type { StagePlan } from './fused-kernel.js';
import { stageKernels } from './stage-kernels.js';

const tiny = { architecture: readArchitecture(tinyConfig), storage: floatStorage('float32') };
/** A decode step of two sequences with four cached tokens each. */
const step: StagePlan = {
  shape: { phase: 'decode', batchSize: 2, newTokens: 1, contextTokens: 4 },
  fusion: 'standard',
  launch: 'eager',
  reserved: null,
};

test("the kernels of a tiny Llama's decode step, counted by hand", () => {
  const rows = stageKernels(tiny, step).map(({ op, kernel, count, flops, bytes }) => [
    op,
    kernel,
    count,
    flops,
    bytes,
  ]);
  // Bytes are weights + inputs + outputs (+ cache) of 2 tokens in float32.
  expect(rows).toEqual([
    ['embedding', 'embedding', 1, 0, 512 + 512],
    ['input_norm', 'elementwise', 1, 0, 256 + 512 + 512],
    ['qkv_proj', 'gemm', 2, 2 * 2 * 128 * 64, 32_768 + 512 + 1024],
    ['rotary', 'elementwise', 2, 0, 2 * 768],
    ['attention', 'attention', 2, 4 * 4 * 16 * 2 * 5, 1024 + 512 + 2 * 4 * 256 + 2 * 256],
    ['o_proj', 'gemm', 2, 2 * 2 * 64 * 64, 16_384 + 512 + 512],
    ['post_attention_norm', 'elementwise', 2, 0, 256 + 1024 + 1024],
    ['gate_up_proj', 'gemm', 2, 2 * 2 * 384 * 64, 98_304 + 512 + 3072],
    ['swiglu', 'elementwise', 2, 0, 3072 + 1536],
    ['down_proj', 'gemm', 2, 2 * 2 * 64 * 192, 49_152 + 1536 + 512],
    // The second layer's norm has an addition before it.
    ['input_norm', 'elementwise', 1, 0, 256 + 1024 + 1024],
    ['final_norm', 'elementwise', 1, 0, 256 + 1024 + 512],
    ['lm_head', 'gemm', 1, 2 * 2 * 512 * 64, 131_072 + 512 + 4096],
    ['sample', 'sampling', 1, 0, 4096 + 16],
  ]);
});

const launches = (model: typeof tiny, plan: StagePlan) =>
  stageKernels(model, plan).reduce((sum, stageKernel) => sum + stageKernel.launches * stageKernel.count, 0);

test("unfused kernels equal nsys's counts for Hugging Face's Llama on an H200", () => {
  // tiny.py of test/fixtures: 4 layers, a decode step of 182 kernels.
  const fixture = readArchitecture({
    ...tinyConfig,
    hidden_size: 512,
    intermediate_size: 1408,
    num_hidden_layers: 4,
    num_attention_heads: 8,
    head_dim: 64,
    vocab_size: 4096,
    max_position_embeddings: 1024,
    tie_word_embeddings: false,
  });
  const half = { architecture: fixture, storage: floatStorage('float16') };
  expect(launches(half, { ...step, fusion: 'none' })).toBe(182);
  // float32 needs no conversions: two kernels less per norm, and two less for the rotary tables.
  expect(launches({ ...half, storage: floatStorage('float32') }, { ...step, fusion: 'none' })).toBe(
    182 - 2 * 9 - 2,
  );
  // TinyLlama's captured step with its static cache: torch.profiler counted 1100 nodes.
  const tinyLlama = readArchitecture(findPreset('tinyllama-1.1b')!.config);
  const graph: StagePlan = { ...step, fusion: 'none', launch: 'graph', reserved: 192 };
  expect(launches({ architecture: tinyLlama, storage: floatStorage('float16') }, graph)).toBe(1100);
});

test('unfused GEMMs keep their FLOPs and weights, and each reads the input', () => {
  const gemmsOf = (fusion: StagePlan['fusion']) =>
    stageKernels(tiny, { ...step, fusion }).filter(({ op }) => op === 'qkv_proj');
  expect(gemmsOf('none').map(({ params, count }) => [params, count])).toEqual([
    [{ m: 2, n: 64, k: 64 }, 2],
    [{ m: 2, n: 32, k: 64 }, 4],
  ]);
  const sum = (what: 'flops' | 'bytes', fusion: StagePlan['fusion']) =>
    gemmsOf(fusion).reduce((total, kernel) => total + kernel[what] * kernel.count, 0);
  expect(sum('flops', 'none')).toBe(sum('flops', 'standard'));
  expect(sum('bytes', 'none') - sum('bytes', 'standard')).toBe(2 * 2 * 512);
});

test('a static cache repeats keys and values per query head and attends to all reserved tokens', () => {
  const kernels = stageKernels(tiny, { ...step, fusion: 'none', launch: 'graph', reserved: 8 });
  const repeat = kernels.find(({ op }) => op === 'repeat_kv');
  // 2 sequences × 8 tokens: 2 heads of 16 read, 4 written; keys, and values.
  expect(repeat).toMatchObject({ kernel: 'strided', count: 4, bytes: 2 * 8 * (2 + 4) * 16 * 4 });
  expect(kernels.find(({ op }) => op === 'attention')?.params).toEqual({
    batch: 2,
    heads: 4,
    kv_heads: 4,
    head_dim: 16,
    new_tokens: 1,
    context: 8,
  });
});

test('full fusion leaves GEMMs, attention, embedding and sampling', () => {
  const names = stageKernels(tiny, { ...step, fusion: 'full' }).map(({ kernel }) => kernel);
  expect([...new Set(names)]).toEqual(['embedding', 'gemm', 'attention', 'sampling']);
});
