import { describe, expect, it } from 'vitest';
import { kvBytesPerToken, kvCacheBytes, stateBytesPerSequence } from './kv-cache.js';
import { countParameters } from './parameters.js';
import { presetArchitecture } from './presets.js';
import { floatStorage } from './storage.js';
import { stageWork } from './work.js';
import { totalWork } from './work-totals.js';

/**
 * Every family of the calculator: published parameters, and the KV cache of one token in 16 bit over all layers, from
 * the dimensions in the paper or config.json: [2, layers, KV heads, head_dim, 2 bytes], MLA [layers, rank + rope, 2].
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
  ['gpt-oss', 'gpt-oss-20b', 20_914_757_184, '"20.91B", arXiv 2508.10925, table 1', [2, 24, 8, 64, 2]],
  ['gpt-oss', 'gpt-oss-120b', 116_829_156_672, '"116.83B", arXiv 2508.10925, table 1', [2, 36, 8, 64, 2]],
  [
    'Llama 4',
    'llama-4-scout-17b-16e',
    107_769_861_120,
    'header 108 641 793 536 less vision 871 932 416',
    [2, 48, 8, 128, 2],
  ],
  [
    'Llama 4',
    'llama-4-maverick-17b-128e',
    400_711_848_960,
    'header 401 583 781 376 less vision 871 932 416',
    [2, 48, 8, 128, 2],
  ],
  [
    'Qwen3-Next',
    'qwen3-next-80b-a3b',
    79_674_391_296,
    'header 81 324 862 720 less its MTP layer 1 650 471 424',
    [2, 12, 2, 256, 2],
  ],
  ['Qwen3.5', 'qwen3.5-35b-a3b', 34_660_610_688, '"35B"; transformers 5.23', [2, 10, 2, 256, 2]],
  ['GLM-4', 'glm-4-9b-0414', 9_400_279_040, 'safetensors header; "9.4B"', [2, 40, 2, 128, 2]],
  ['GLM-4', 'glm-4-32b-0414', 32_566_081_536, 'safetensors header; "32.6B"', [2, 61, 2, 128, 2]],
  [
    'GLM-4-MoE',
    'glm-4.5-air',
    106_852_251_264,
    'header 110 468 824 832 less its MTP layer 3 616 573 568',
    [2, 46, 8, 128, 2],
  ],
  [
    'GLM-4-MoE',
    'glm-4.6',
    352_797_829_024,
    'header 356 785 898 816 less its MTP layer 3 988 069 792',
    [2, 92, 8, 128, 2],
  ],
  [
    'MiniMax-M2',
    'minimax-m2',
    228_689_764_864,
    'header 228 703 644 928 less 13 880 064 scales of fp8 blocks',
    [2, 62, 8, 128, 2],
  ],
  ['DeepSeek V3', 'kimi-k2', 1_026_408_232_448, '"1T"; transformers 5.23', [61, 512 + 64, 2]],
  ['DeepSeek V3', 'kimi-k2-thinking', 1_026_408_232_448, 'as Kimi-K2', [61, 512 + 64, 2]],
  ['OLMo 2', 'olmo-2-7b', 7_298_617_344, 'safetensors header; "7.3B"', [2, 32, 32, 128, 2]],
  ['OLMo 2', 'olmo-2-32b', 32_234_279_936, 'safetensors header; "32.2B"', [2, 64, 8, 128, 2]],
  ['OLMo 3', 'olmo-3-7b', 7_298_011_136, 'safetensors header; "7.3B"', [2, 32, 32, 128, 2]],
  ['Falcon', 'falcon-7b', 6_921_720_704, 'safetensors header less the second lm_head', [2, 32, 1, 64, 2]],
  ['Falcon', 'falcon-40b', 41_303_293_952, '"41.3B" without the second lm_head', [2, 60, 8, 64, 2]],
  ['GPT-NeoX', 'gpt-neox-20b', 20_554_567_680, '20 554 567 680 of arXiv 2204.06745', [2, 44, 64, 96, 2]],
  ['GPT-NeoX', 'pythia-1.4b', 1_414_647_808, '1 414 647 808 of the Pythia model card', [2, 24, 16, 128, 2]],
  ['GPT-NeoX', 'pythia-6.9b', 6_857_302_016, '6 857 302 016 of the Pythia model card', [2, 32, 32, 128, 2]],
  ['GPT-NeoX', 'pythia-12b', 11_846_072_320, '11 846 072 320 of the Pythia model card', [2, 36, 40, 128, 2]],
  ['Granite', 'granite-3.1-8b', 8_170_848_256, 'safetensors header; "8.17B"', [2, 40, 8, 128, 2]],
  ['Granite', 'granite-3.3-2b', 2_533_539_840, 'safetensors header; "2.53B"', [2, 40, 8, 64, 2]],
  ['Granite', 'granite-3.3-8b', 8_170_864_640, 'safetensors header; "8.17B"', [2, 40, 8, 128, 2]],
  ['Granite-MoE', 'granite-3.1-3b-a800m', 3_298_793_472, 'safetensors header; "3.3B"', [2, 32, 8, 64, 2]],
  ['Granite 4', 'granite-4.0-h-tiny', 6_939_037_248, 'safetensors header; "7B"', [2, 4, 4, 128, 2]],
  ['Granite 4', 'granite-4.0-h-small', 32_207_337_984, 'safetensors header; "32B"', [2, 4, 8, 128, 2]],
  ['Gemma 3n', 'gemma-3n-e4b', 6_835_235_568, 'transformers 5.23, text model', [2, 20, 2, 256, 2]],
  ['Mamba', 'mamba-2.8b', 2_768_345_600, 'safetensors header; "2.8B"', [0]],
  ['Mamba-2', 'mamba-codestral-7b', 7_285_403_648, '7 285 403 648 of the model card', [0]],
  ['Jamba', 'jamba-mini', 51_570_323_328, 'safetensors header; "52B"', [2, 4, 8, 128, 2]],
];

describe('families', () => {
  it.each(table)('%s: %s has %i parameters (%s)', (family, id, parameters, _source, kv) => {
    const a = presetArchitecture(id);
    expect(a.family).toBe(family);
    expect(countParameters(a).total).toBe(parameters);
    expect(kvBytesPerToken(a, 'bfloat16')).toBe(kv.reduce((product, value) => product * value, 1));
  });
});

describe('active parameters', () => {
  it.each([
    // [preset, published active parameters in billions, what the figure excludes]
    ['gpt-oss-20b', 3.61, 'embedding'],
    ['gpt-oss-120b', 5.13, 'embedding'],
    ['llama-4-scout-17b-16e', 17, 'nothing'],
    ['qwen3-next-80b-a3b', 3, 'both'],
    ['glm-4.5-air', 12, 'both'],
    ['glm-4.5', 32, 'both'],
    ['minimax-m2', 10, 'both'],
    ['kimi-k2', 32, 'embedding'],
    ['granite-4.0-h-tiny', 1, 'nothing'],
    ['granite-4.0-h-small', 9, 'nothing'],
    ['jamba-mini', 12, 'nothing'],
  ] as const)('of %s equal the published %d B', (id, billions, leftOut) => {
    const { active, embedding, lm_head } = countParameters(presetArchitecture(id));
    const activeCount = active - { nothing: 0, embedding, both: embedding + lm_head }[leftOut];
    // gpt-oss publishes two decimals; the names of the others are rounded.
    const tolerance = Number.isInteger(billions) ? 0.08 * billions + 0.45 : 0.005;
    expect(Math.abs(activeCount / 1e9 - billions)).toBeLessThanOrEqual(tolerance);
  });
});

describe('states of recurrent layers', () => {
  it.each([
    // layers × (state + the convolution's last 3 inputs) elements of 2 bytes, whatever the length
    ['qwen3-next-80b-a3b', 36 * (32 * 128 * 128 + 8192 * 3) * 2],
    ['mamba-2.8b', 64 * (5120 * 16 + 5120 * 3) * 2],
    ['mamba-codestral-7b', 64 * (128 * 64 * 128 + (8192 + 2 * 8 * 128) * 3) * 2],
    ['jamba-mini', 28 * (8192 * 16 + 8192 * 3) * 2],
    ['granite-4.0-h-tiny', 36 * (48 * 64 * 128 + (3072 + 2 * 128) * 3) * 2],
    ['llama-3.1-8b', 0],
  ])('%s keeps %d bytes per sequence', (id, bytes) => {
    const a = presetArchitecture(id);
    expect(stateBytesPerSequence(a, 'bfloat16')).toBe(bytes);
    const estimateAt = (contextTokens: number) =>
      kvCacheBytes(a, { kvCache: 'bfloat16', batchSize: 3, contextTokens }) -
      3 * contextTokens * kvBytesPerToken(a, 'bfloat16');
    expect([estimateAt(1), estimateAt(5000)]).toEqual([3 * bytes, 3 * bytes]);
  });

  it('are read and written once per decode step', () => {
    const a = presetArchitecture('mamba-2.8b');
    const bf16 = floatStorage('bfloat16');
    const step = { phase: 'decode', batchSize: 4, newTokens: 1, contextTokens: 1000 } as const;
    const { bytes } = totalWork(stageWork(a, step, bf16));
    const state = 4 * stateBytesPerSequence(a, 'bfloat16');
    expect([bytes.kv_read, bytes.kv_write]).toEqual([state, state]);
  });
});

it('Gemma 3n reads keys of earlier layers, and stores none for them', () => {
  const a = presetArchitecture('gemma-3n-e2b');
  const ownKeyLayers = a.layers.filter(
    ({ attention }) => attention.kind === 'grouped' && !attention.sharedKv,
  );
  expect([ownKeyLayers.length, a.layers.length]).toEqual([20, 30]);
});

it('Llama 4 decodes against the keys of its own chunk', () => {
  const a = presetArchitecture('llama-4-scout-17b-16e');
  const step = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 10_000 } as const;
  const { bytes } = totalWork(stageWork(a, step, floatStorage('bfloat16')));
  // 36 layers with chunks of 8192, 12 with the whole length.
  expect(bytes.kv_read).toBe((36 * (10_000 - 8192) + 12 * 10_000) * 2 * 8 * 128 * 2);
});

/**
 * Headers include parameters that the arithmetic excludes: a layer of multi-token prediction (a decoder layer and its
 * joint projection).
 */
it.each([
  // One more decoder layer, a projection of both inputs, norms of both and of the output, copies of embedding and head.
  ['qwen3-next-80b-a3b', 1_650_471_424, 0],
  ['glm-4.5-air', 3_616_573_568, 2],
  ['glm-4.6', 3_988_069_792, 0],
] as const)('%s: its MTP layer has %d parameters', (id, mtp, copies) => {
  const a = presetArchitecture(id);
  const D = a.hiddenSize;
  const { total } = countParameters({ ...a, layers: [...a.layers, a.layers.at(-1)!] });
  const layer = total - countParameters(a).total;
  expect(layer + 2 * D * D + 3 * D + copies * D * a.vocabSize).toBe(mtp);
});

it('MiniMax-M2 stores 13 880 064 scales, one per block of 128 × 128', () => {
  const blocks = (rows: number, columns: number) => (rows / 128) * (columns / 128);
  const attention = 2 * blocks(6144, 3072) + 2 * blocks(1024, 3072);
  expect(62 * (attention + 256 * 3 * blocks(1536, 3072))).toBe(13_880_064);
});
