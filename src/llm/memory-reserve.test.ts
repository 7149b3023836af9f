import { describe, expect, it } from 'vitest';
import { reservedBytes } from './memory-reserve.js';
import { withDefaults } from './memory-request.js';
import { devices } from './memory-shards.js';
import { presetArchitecture } from './presets.js';
import { floatStorage } from './storage.js';
import { torchAllocator } from './torch-allocator.js';
import type { DType } from '../model/dtype.js';

const mib = 2 ** 20;

/**
 * torch.cuda.memory_reserved on an H200 (torch 2.11, transformers 5.17, random weights, SDPA), MiB: after loading,
 * after the first prefill, after its decode, and at the end of several repeats.
 */
const measured: [string, DType, number, number, number, number[], 'eager'?][] = [
  ['qwen2.5-0.5b', 'float16', 8, 512, 64, [1252, 1304, 1304, 1304]],
  ['llama-2-7b', 'float16', 4, 512, 48, [12_854, 14_462, 14_930, 14_930]],
  ['llama-3.1-8b', 'bfloat16', 16, 1024, 32, [15_446, 20_216, 20_216, 20_216]],
  ['qwen2.5-14b', 'bfloat16', 1, 4096, 16, [28_318, 29_774, 29_774, 29_774]],
  ['qwen1.5-moe-a2.7b', 'bfloat16', 4, 512, 24, [27_500, 28_164, 28_164, 28_196]],
  ['qwen2-1.5b', 'float32', 8, 512, 48, [6882, 6884, 6884, 6884]],
  ['gpt2-xl', 'float16', 8, 512, 32, [3212, 4612, 4950, 4950]],
  ['opt-6.7b', 'float16', 4, 512, 32, [13_098, 14_060, 14_132, 14_132]],
  ['phi-2', 'float16', 8, 512, 32, [5494, 7348, 7614, 7614]],
  ['gemma-2-9b', 'bfloat16', 4, 1024, 16, [19_378, 19_718, 19_718, 19_718]],
  ['gemma-3-4b', 'bfloat16', 4, 2048, 16, [8686, 9330, 9330, 9330]],
  ['mistral-7b', 'float16', 4, 1024, 16, [13_942, 16_268, 16_268, 16_268], 'eager'],
  ['llama-3.2-1b', 'bfloat16', 16, 128, 512, [2862, 2862, 2862, 2862]],
  ['deepseek-v2-lite', 'bfloat16', 4, 512, 16, [30_076, 30_720, 30_724, 30_724]],
];

describe('reservedBytes', () => {
  const reserve = (
    id: string,
    dtype: DType,
    shape: [number, number, number],
    { tensor = 1, attention = 'fused' }: { tensor?: number; attention?: 'fused' | 'eager' | undefined } = {},
  ): number[] => {
    const a = presetArchitecture(id);
    const [batchSize, inputLen, outputLen] = shape;
    const request = withDefaults(a, {
      batchSize,
      inputLen,
      outputLen,
      storage: floatStorage(dtype),
      loading: 'random',
      attention,
      parallel: { tensor },
    });
    const [device] = devices(a, request.parallel, request.engine);
    return Object.values(reservedBytes(a, device!, request, 32 * mib)).map((bytes) => bytes / mib);
  };
  // Within one of torch's segments for medium blocks.
  const expectNear = (reserved: number[], expected: number[]): void => {
    for (const [index, value] of reserved.entries())
      expect(Math.abs(value - expected[index]!)).toBeLessThanOrEqual(20);
  };

  it.each(measured)(
    "%s %s, batch %i, %i + %i, equals torch's reserve",
    (id, dtype, batch, input, output, expected, attention) => {
      const reserved = reserve(id, dtype, [batch, input, output], { attention });
      expect(reserved[0]).toBe(expected[0]);
      expectNear(reserved, expected);
    },
  );

  it.each([
    ['llama-3.1-8b', 8, 1024, 24, [8162, 9572, 9572, 9572]],
    ['qwen2.5-14b', 4, 1024, 12, [14_832, 15_822, 15_822, 15_822]],
  ] as const)('%s on two H200s, batch %i, %i + %i', (id, batch, input, output, expected) => {
    expectNear(reserve(id, 'bfloat16', [batch, input, output], { tensor: 2 }), [...expected]);
  });
});

describe('torchAllocator', () => {
  it('has segments of 2 MiB, 20 MiB and the rounded size', () => {
    const torch = torchAllocator();
    torch.malloc(1);
    expect([torch.reserved(), torch.allocated()]).toEqual([2 * mib, 512]);
    torch.malloc(mib);
    expect(torch.reserved()).toBe(2 * mib);
    torch.malloc(mib + 1);
    expect(torch.reserved()).toBe(22 * mib);
    torch.malloc(21 * mib);
    expect(torch.reserved()).toBe(22 * mib + 22 * mib);
    // A remainder of up to 1 MiB is not split off: the block of 21 MiB counts as 22.
    expect(torch.allocated()).toBe(512 + mib + (mib + 512) + 22 * mib);
  });

  it('takes the smallest block that is large enough and merges neighbors on free', () => {
    const torch = torchAllocator();
    const [first, second] = [torch.malloc(4 * mib), torch.malloc(6 * mib)];
    torch.free(first);
    torch.free(second);
    // All 20 MiB are one block again.
    torch.malloc(9.5 * mib);
    torch.malloc(9.5 * mib);
    expect(torch.reserved()).toBe(20 * mib);
    expect(torch.allocated()).toBe(20 * mib);
  });
});
