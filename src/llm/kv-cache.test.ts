import { describe, expect, it } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { kvBytesPerToken, kvCacheBytes } from './kv-cache.js';
import { presetArchitecture } from './presets.js';

describe('kvBytesPerToken', () => {
  it.each([
    // Published per-token sizes: 0.5 MiB for Llama-2 7B in fp16, 128 KiB for Llama-3 8B.
    ['llama-2-7b', 524_288],
    ['llama-3.1-8b', 131_072],
    ['mistral-7b', 131_072],
    ['llama-2-70b', 327_680],
    // DeepSeek V3: 61·(512 + 64)·2, the 70 KB of its hardware paper (arXiv 2505.09343, table 1: 70.272 KB).
    ['deepseek-v3', 70_272],
    ['gpt2', 2 * 12 * 768 * 2],
  ])('%s in bfloat16 takes %i', (id, bytes) => {
    expect(kvBytesPerToken(presetArchitecture(id), 'bfloat16')).toBe(bytes);
  });

  it('splits KV heads over a tensor-parallel group, never below one, and MLA not at all', () => {
    const llama = presetArchitecture('llama-3.1-8b'); // 8 KV heads
    expect([1, 2, 8, 16].map((tp) => kvBytesPerToken(llama, 'float16', tp))).toEqual([
      131_072, 65_536, 16_384, 16_384,
    ]);
    expect(kvBytesPerToken(presetArchitecture('deepseek-v3'), 'bfloat16', 8)).toBe(70_272);
    expect(() => kvBytesPerToken(llama, 'float16', 3)).toThrow(InferscopeError);
    expect(() => kvBytesPerToken(llama, 'float16', 0)).toThrow(InferscopeError);
  });

  it('halves in float8', () => {
    expect(kvBytesPerToken(presetArchitecture('llama-2-7b'), 'float8')).toBe(262_144);
  });
});

describe('kvCacheBytes', () => {
  it('is tokens × bytes per token with full attention', () => {
    const a = presetArchitecture('qwen2.5-7b');
    // 2·28·4·128·2 = 57,344 per token. use_sliding_window is false, so all 100,000 tokens are kept.
    const shape = { kvCache: 'bfloat16', batchSize: 3, contextTokens: 100_000, windows: 'window' } as const;
    expect(kvCacheBytes(a, shape)).toBe(3 * 100_000 * 57_344);
  });

  it('explains the +682 % error of other calculators for Gemma-3 27B at 131,072 tokens', () => {
    const a = presetArchitecture('gemma-3-27b');
    const ours = kvCacheBytes(a, {
      kvCache: 'bfloat16',
      batchSize: 1,
      contextTokens: 131_072,
      windows: 'window',
    });
    // They use head_dim = 5376 / 32 = 168 instead of 128, and the whole length in all 62 layers.
    const otherCalculators = 2 * 62 * 16 * 168 * 2 * 131_072;
    expect(Math.round((otherCalculators / ours - 1) * 100)).toBe(682);
    // By hand: 10 full layers, 52 with a window of 1024; 2·16·128 elements of 2 bytes.
    expect(ours).toBe((10 * 131_072 + 52 * 1024) * 8192);
  });

  it('explains their −81 % error for DeepSeek V3', () => {
    // One KV head of 7168 / 128 = 56 dimensions, keys and values.
    const otherCalculators = 2 * 61 * 1 * 56 * 2;
    const ours = kvBytesPerToken(presetArchitecture('deepseek-v3'), 'bfloat16');
    expect(Math.round((otherCalculators / ours - 1) * 100)).toBe(-81);
  });

  it('keeps the whole length in windowed layers unless the engine has a hybrid allocator', () => {
    const a = presetArchitecture('gemma-3-27b');
    const shape = { kvCache: 'bfloat16', batchSize: 1, contextTokens: 40_000 } as const;
    expect(kvCacheBytes(a, shape)).toBe(62 * 8192 * 40_000);
    // vLLM: min(1024 − 1 + 8192, 131072) tokens in the 52 windowed layers.
    const windows = { maxNumBatchedTokens: 8192, maxModelLen: 131_072 };
    expect(kvCacheBytes(a, { ...shape, windows })).toBe((10 * 40_000 + 52 * 9215) * 8192);
  });
});
