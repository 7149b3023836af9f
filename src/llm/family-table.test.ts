import { describe, expect, it } from 'vitest';
import { kvBytesPerToken } from './kv-cache.js';
import { countParameters } from './parameters.js';
import { presetArchitecture } from './presets.js';

/**
 * Every family of the calculator: parameters as published, and the KV cache of one token in 16 bit, all layers, from the
 * dimensions that the paper or config.json states: [2, layers, KV heads, head_dim, 2 bytes], MLA [layers, rank + rope, 2].
 */
const table: [family: string, id: string, parameters: number, source: string, kv: number[]][] = [
  ['Llama', 'llama-2-7b', 6_738_415_616, 'safetensors header; "7B" of arXiv 2307.09288', [2, 32, 32, 128, 2]],
  ['Llama', 'llama-2-13b', 13_015_864_320, 'safetensors header', [2, 40, 40, 128, 2]],
  ['Llama', 'llama-2-70b', 68_976_648_192, 'safetensors header', [2, 80, 8, 128, 2]],
  ['Llama', 'llama-3.1-8b', 8_030_261_248, 'index: total_size 16 060 522 496 / 2', [2, 32, 8, 128, 2]],
  ['Llama', 'llama-3.1-70b', 70_553_706_496, 'index: total_size 141 107 412 992 / 2', [2, 80, 8, 128, 2]],
  ['Llama', 'llama-3.2-1b', 1_235_814_400, 'safetensors header', [2, 16, 8, 64, 2]],
  ['Llama', 'llama-3.2-3b', 3_212_749_824, 'safetensors header', [2, 28, 8, 128, 2]],
  ['Llama', 'tinyllama-1.1b', 1_100_048_384, 'safetensors header', [2, 22, 4, 64, 2]],
  ['Mistral', 'mistral-7b', 7_241_732_096, 'safetensors header', [2, 32, 8, 128, 2]],
  ['Mistral', 'mistral-7b-v0.3', 7_248_023_552, 'safetensors header', [2, 32, 8, 128, 2]],
  ['Mixtral', 'mixtral-8x7b', 46_702_792_704, 'index: total_size 93 405 585 408 / 2', [2, 32, 8, 128, 2]],
  ['Mixtral', 'mixtral-8x22b', 140_620_634_112, 'safetensors header; "141B"', [2, 56, 8, 128, 2]],
  ['Qwen2', 'qwen2-1.5b', 1_543_714_304, 'safetensors header', [2, 28, 2, 128, 2]],
  ['Qwen2', 'qwen2.5-0.5b', 494_032_768, 'safetensors header', [2, 24, 2, 64, 2]],
  ['Qwen2', 'qwen2.5-3b', 3_085_938_688, 'safetensors header', [2, 36, 2, 128, 2]],
  ['Qwen2', 'qwen2.5-7b', 7_615_616_512, 'index: total_size 15 231 233 024 / 2', [2, 28, 4, 128, 2]],
  ['Qwen2', 'qwen2.5-14b', 14_770_033_664, 'index: total_size 29 540 067 328 / 2', [2, 48, 8, 128, 2]],
  ['Qwen2', 'qwen2.5-32b', 32_763_876_352, 'index: total_size 65 527 752 704 / 2', [2, 64, 8, 128, 2]],
  ['Qwen2', 'qwen2.5-72b', 72_706_203_648, 'index: total_size 145 412 407 296 / 2', [2, 80, 8, 128, 2]],
  ['Qwen3', 'qwen3-0.6b', 596_049_920, 'header less the second lm_head', [2, 28, 8, 128, 2]],
  ['Qwen3', 'qwen3-8b', 8_190_735_360, 'index: total_size 16 381 470 720 / 2', [2, 36, 8, 128, 2]],
  ['Qwen3', 'qwen3-32b', 32_762_123_264, 'safetensors header', [2, 64, 8, 128, 2]],
  ['Qwen2-MoE', 'qwen1.5-moe-a2.7b', 14_315_784_192, 'safetensors header; "14.3B"', [2, 24, 16, 128, 2]],
  ['Qwen3-MoE', 'qwen3-30b-a3b', 30_532_122_624, 'safetensors header; "30.5B"', [2, 48, 4, 128, 2]],
  ['Qwen3-MoE', 'qwen3-235b-a22b', 235_093_634_560, 'safetensors header; "235B"', [2, 94, 4, 128, 2]],
  ['Gemma', 'gemma-2b', 2_506_172_416, 'safetensors header', [2, 18, 1, 256, 2]],
  ['Gemma', 'gemma-7b', 8_537_680_896, 'safetensors header', [2, 28, 16, 256, 2]],
  ['Gemma 2', 'gemma-2-2b', 2_614_341_888, 'safetensors header', [2, 26, 4, 256, 2]],
  ['Gemma 2', 'gemma-2-9b', 9_241_705_984, 'safetensors header', [2, 42, 8, 256, 2]],
  ['Gemma 2', 'gemma-2-27b', 27_227_128_320, 'safetensors header', [2, 46, 16, 128, 2]],
  ['Gemma 3', 'gemma-3-1b', 999_885_952, 'safetensors header', [2, 26, 1, 256, 2]],
  ['Phi', 'phi-2', 2_779_683_840, 'safetensors header', [2, 32, 32, 80, 2]],
  ['Phi-3', 'phi-3-mini-4k', 3_821_079_552, 'safetensors header', [2, 32, 32, 96, 2]],
  ['Phi-3', 'phi-4', 14_659_507_200, 'safetensors header', [2, 40, 10, 128, 2]],
  ['GPT-2', 'gpt2', 124_439_808, 'header less its mask buffers', [2, 12, 12, 64, 2]],
  ['GPT-2', 'gpt2-xl', 1_557_611_200, 'header less its mask buffers', [2, 48, 25, 64, 2]],
  ['OPT', 'opt-125m', 125_239_296, 'parameters of the checkpoint', [2, 12, 12, 64, 2]],
  ['OPT', 'opt-6.7b', 6_658_473_984, 'parameters of the checkpoint', [2, 32, 32, 128, 2]],
  ['DeepSeek V2', 'deepseek-v2-lite', 15_706_484_224, 'safetensors header; "15.7B"', [27, 512 + 64, 2]],
  ['DeepSeek V2', 'deepseek-v2', 235_741_434_880, 'safetensors header; "236B"', [60, 512 + 64, 2]],
  [
    'DeepSeek V3',
    'deepseek-v3',
    671_026_419_200,
    '"671B" of arXiv 2412.19437, without its MTP layer',
    [61, 512 + 64, 2],
  ],
];

describe('families', () => {
  it.each(table)('%s: %s has %i parameters (%s)', (family, id, parameters, _source, kv) => {
    const a = presetArchitecture(id);
    expect(a.family).toBe(family);
    expect(countParameters(a).total).toBe(parameters);
    expect(kvBytesPerToken(a, 'bfloat16')).toBe(kv.reduce((product, one) => product * one));
  });
});
