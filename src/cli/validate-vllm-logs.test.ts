import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseVllmLog } from '../import/vllm-log/parse.js';
import { readArchitecture } from '../llm/read-architecture.js';
import { estimateMemory, type MemoryEstimate } from '../llm/memory-estimate.js';
import type { MemoryRequest } from '../llm/memory-request.js';
import { findPreset } from '../llm/presets.js';
import { quantizedWeights } from '../llm/quantization.js';
import { floatStorage } from '../llm/storage.js';
import type { VllmLogFacts } from '../model/vllm-log.js';

/** Public logs of supported models, with facts about the run that the log lacks. */
const logs: {
  file: string;
  preset: string;
  change?: Partial<MemoryRequest>;
  positions?: number;
  /** Bytes that the log counts in addition to the weights. */
  extra?: { bytes: number; why: string };
}[] = [
  {
    file: 'v0.4.2-opt-125m.log',
    preset: 'opt-125m',
    change: { storage: floatStorage('float16') },
    extra: { bytes: 8 * 2 ** 20, why: '0.4 prints the peak while loading: one tensor more' },
  },
  {
    file: 'v0.5.4-gptq-and-awq.log',
    preset: 'llama-3.1-8b',
    change: {
      storage: { ...floatStorage('float16'), weights: quantizedWeights('awq-int4-g128', 'float16') },
    },
  },
  { file: 'v0.6.4-h200.log', preset: 'tinyllama-1.1b' },
  {
    file: 'v0.7.2-qwen2.5-1.5b-t4.log',
    preset: 'qwen2.5-1.5b',
    change: { storage: floatStorage('float16') },
    positions: 32_768,
  },
  { file: 'v0.9.2-qwen3-8b-a100.log', preset: 'qwen3-8b' },
  { file: 'v0.22.0-qwen2.5-7b.log', preset: 'qwen2.5-7b', positions: 32_768 },
  {
    file: '2026-four-ranks-qwen3-235b-fp8.log',
    preset: 'qwen3-235b-a22b',
    change: {
      storage: { ...floatStorage('bfloat16'), weights: quantizedWeights('fp8-block128', 'bfloat16') },
      parallel: { tensor: 4 },
    },
  },
];

const readLog = (file: string): VllmLogFacts =>
  parseVllmLog(readFileSync(join('test', 'fixtures', 'vllm-logs', file), 'utf8'));

function estimateOf(
  { preset, change, positions }: (typeof logs)[number],
  facts: VllmLogFacts,
): MemoryEstimate {
  const config = { ...findPreset(preset)!.config };
  if (positions !== undefined) config['max_position_embeddings'] = positions;
  return estimateMemory(readArchitecture(config), {
    engine: 'vllm',
    batchSize: 1,
    inputLen: 1,
    outputLen: 1,
    storage: floatStorage('bfloat16'),
    engineVersion: facts.version?.value ?? null,
    kvPoolBytes: facts.ranks[0]!.kv_cache?.value ?? null,
    blockSize: facts.block_size?.value ?? 16,
    ...(facts.max_concurrency ? { maxModelLen: facts.max_concurrency.value.tokens } : {}),
    ...change,
  });
}

describe.each(logs)('$file', (log) => {
  const facts = readLog(log.file);
  const estimate = estimateOf(log, facts);
  const [rank] = facts.ranks;

  it('estimates weights within 1 %', () => {
    const estimated = estimate.lines.find(({ component }) => component === 'model_weights')!.gpuBytes[0]!;
    const { value, rounding_bytes: rounding } = rank!.weights!;
    const slack = 0.01 * value + rounding + (log.extra?.bytes ?? 0);
    expect(Math.abs(estimated - value), `${estimated} against ${value}`).toBeLessThanOrEqual(slack);
  });

  it.runIf(rank?.kv_cache)('estimates KV tokens within a block and the printed rounding', () => {
    const { tokens, blocks, concurrency } = estimate.kvPool!;
    const blockSize = estimate.request.blockSize;
    const rounding = rank!.kv_cache!.rounding_bytes / estimate.kvBytesPerToken;
    const logged = facts.kv_cache_tokens?.value ?? facts.kv_cache_blocks!.value * blockSize;
    expect(blocks! * blockSize).toBe(tokens);
    expect(Math.abs(tokens - logged), `${tokens} against ${logged}`).toBeLessThanOrEqual(
      blockSize + rounding,
    );
    if (facts.max_concurrency) {
      const share = (blockSize + rounding) / logged;
      expect(Math.abs(concurrency / facts.max_concurrency.value.requests - 1)).toBeLessThan(share + 0.003);
    }
  });
});

it('estimates the activation peak of the only log with a known batch within 10 %', () => {
  // V0 on a T4 profiles with max_num_batched_tokens = max_model_len = 32 768.
  const log = logs.find(({ file }) => file.startsWith('v0.7.2'))!;
  const facts = readLog(log.file);
  const estimate = estimateOf({ ...log, change: { ...log.change, maxNumBatchedTokens: 32_768 } }, facts);
  const estimated = estimate.lines.find(({ component }) => component === 'activations')!.bytes;
  const { value } = facts.ranks[0]!.activation_peak!;
  expect(Math.abs(estimated / value - 1)).toBeLessThan(0.1);
});
