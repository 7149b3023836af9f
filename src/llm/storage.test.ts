import { describe, expect, it } from 'vitest';
import { parseDType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { readArchitecture } from './read-architecture.js';
import { countParameters } from './parameters.js';
import { storageOf } from './memory-storage.js';
import { findPreset, presetArchitecture, presets } from './presets.js';
import {
  declaredDType,
  declaredWeights,
  parseScheme,
  quantizedWeights,
  type SchemeName,
} from './quantization.js';
import {
  averageBytesPerWeight,
  floatStorage,
  matrixBytes,
  rotaryTableBytes,
  weightBytes,
} from './storage.js';
import { stageWork } from './work.js';
import { totalWork } from './work-totals.js';

/** Bytes or bits per weight as the formats' documents state them. */
const published: [SchemeName, number][] = [
  ['int4-g32', 0.5625],
  ['int4-g128', 0.515_625],
  ['gptq-int4-g128', 0.519_531_25],
  ['gptq-int4-g32', 0.578_125],
  ['awq-int4-g128', 0.519_531_25],
  ['fp8-block128', 1 + 4 / 16_384],
  ['mxfp4', 0.531_25],
  ['nvfp4', 0.5625],
  ['bnb-nf4', 0.5625],
  ['bnb-nf4-double', 0.515_869_140_625], // 4.127 bits: QLoRA's "0.127 bits a parameter" for the constants
  ['matmulnbits-int4', 0.625],
  ['matmulnbits-int4-zero-point', 0.640_625],
  ['gguf-q4_0', 4.5 / 8],
  ['gguf-q5_0', 5.5 / 8],
  ['gguf-q8_0', 8.5 / 8],
  ['gguf-q2_k', 2.625 / 8],
  ['gguf-q3_k', 3.4375 / 8],
  ['gguf-q4_k', 4.5 / 8],
  ['gguf-q5_k', 5.5 / 8],
  ['gguf-q6_k', 6.5625 / 8],
];

describe('bytes per weight', () => {
  it.each(published)('%s takes %f', (name, bytes) => {
    expect(averageBytesPerWeight(quantizedWeights(name, 'bfloat16').linear)).toBe(bytes);
  });

  it('counts whole scales for incomplete tiles', () => {
    const { linear } = quantizedWeights('matmulnbits-int4', 'float32');
    // K = 40: 1.25 blocks are two; 3 rows.
    expect(matrixBytes(linear, 3, 40)).toBe(3 * 20 + 3 * 2 * 4);
    // 130 × 129: 2 × 2 blocks of 128².
    expect(matrixBytes(quantizedWeights('fp8-block128', 'bfloat16').linear, 130, 129)).toBe(130 * 129 + 16);
    expect(matrixBytes(quantizedWeights('fp8-row', 'bfloat16').linear, 7, 100)).toBe(700 + 28);
  });
});

/** As llm-compressor writes it into config.json. */
function compressed(weights: Record<string, unknown>): Record<string, unknown> {
  const group = { targets: ['Linear'], weights, input_activations: { num_bits: 8, dynamic: true } };
  return { quant_method: 'compressed-tensors', config_groups: { group_0: group }, ignore: ['lm_head'] };
}

describe('weightBytes', () => {
  it.each(presets.map(({ id }) => id))('%s in bfloat16 takes two bytes per parameter', (id) => {
    const a = presetArchitecture(id);
    expect(weightBytes(a, floatStorage('bfloat16')).total).toBe(2 * countParameters(a).total);
  });

  it('Llama-3.1 8B: 16,060,522,496 bytes, the total_size of its safetensors index', () => {
    const bytes = weightBytes(presetArchitecture('llama-3.1-8b'), floatStorage('bfloat16'));
    expect(bytes.total).toBe(16_060_522_496);
    expect(bytes.lm_head).toBe(2 * 128_256 * 4096);
  });

  it('TinyLlama with GPTQ does not quantize embeddings, lm_head and norms', () => {
    const a = presetArchitecture('tinyllama-1.1b');
    const bytes = weightBytes(a, { weights: quantizedWeights('gptq-int4-g128', 'float16') });
    const linear = 22 * (2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 5632);
    expect(bytes.linear).toBe((linear * (128 / 2 + 2.5)) / 128);
    expect(bytes.embedding + bytes.lm_head).toBe(2 * 2 * 32_000 * 2048);
    expect(bytes.rest).toBe(2 * (22 * 2 + 1) * 2048);
    expect(bytes.total).toBe(bytes.linear + bytes.embedding + bytes.lm_head + bytes.rest);
  });

  it('a GGUF block type covers embeddings too', () => {
    const a = presetArchitecture('llama-2-7b');
    const bytes = weightBytes(a, { weights: quantizedWeights('gguf-q8_0', 'float32') });
    // Llama-2 7B Q8_0: norms in f32, everything else 8.5 bits. Its published file is 7.16 GB.
    const norms = 65 * 4096;
    expect(bytes.total).toBe(((6_738_415_616 - norms) * 8.5) / 8 + 4 * norms);
    expect(bytes.total / 1e9).toBeCloseTo(7.16, 2);
  });

  it('DeepSeek V3 in fp8 has routers and norms in bfloat16', () => {
    const config = findPreset('deepseek-v3')?.config ?? {};
    const weights = declaredWeights(config);
    expect(weights?.name).toBe('fp8-block128');
    if (!weights) return;
    const bytes = weightBytes(readArchitecture(config), { weights });
    // 671 B parameters, of which 1.85 B embeddings and lm_head stay 2 bytes: 673 GB, scales under 0.2 GB.
    expect(bytes.total / 1e9).toBeCloseTo(671.03 + 1.853 + 0.164 + 0.107, 1);
    expect(weights.compute).toBe('float8');
  });
});

describe('compute dtypes', () => {
  it('fp8 layers compute in float8; routers, attention and lm_head in bfloat16', () => {
    const a = presetArchitecture('deepseek-v2-lite');
    const weights = quantizedWeights('fp8-block128', 'bfloat16');
    const ops = stageWork(
      a,
      { phase: 'prefill', batchSize: 1, newTokens: 16, contextTokens: 0 },
      { weights, activations: 'bfloat16', kvCache: 'bfloat16' },
    );
    const in16 = new Set(ops.filter((op) => op.flops > 0 && op.dtype === 'bfloat16').map(({ name }) => name));
    expect([...in16].sort()).toEqual(['attention', 'lm_head', 'router']);
    const { flops_by_dtype, flops } = totalWork(ops);
    expect(Object.keys(flops_by_dtype).sort()).toEqual(['bfloat16', 'float8']);
    expect((flops_by_dtype.bfloat16 ?? 0) + (flops_by_dtype.float8 ?? 0)).toBe(flops);
  });

  it('int4 weights shrink the bytes of decode but not its FLOPs', () => {
    const a = presetArchitecture('llama-2-7b');
    const shape = { phase: 'decode', batchSize: 1, newTokens: 1, contextTokens: 0 } as const;
    const work = (weights: ReturnType<typeof quantizedWeights>): ReturnType<typeof totalWork> =>
      totalWork(stageWork(a, shape, { weights, activations: 'float32', kvCache: 'float32' }));
    const int4 = work(quantizedWeights('matmulnbits-int4', 'float32'));
    const full = work(floatStorage('float32').weights);
    expect(int4.flops_by_dtype).toEqual(full.flops_by_dtype);
    // Everything except norms and one embedding row goes from 4 to 0.625 bytes.
    expect(full.bytes.weights - int4.bytes.weights).toBe(
      (6_738_415_616 - 32_000 * 4096 - 65 * 4096) * (4 - 0.625),
    );
  });
});

describe('4-bit floats', () => {
  it('NVFP4 has one byte per 16 weights and 4 per matrix, MXFP4 one byte per 32, and a whole one for incomplete blocks', () => {
    const nvfp4 = quantizedWeights('nvfp4', 'bfloat16').linear;
    const mxfp4 = quantizedWeights('mxfp4', 'bfloat16').linear;
    expect(matrixBytes(nvfp4, 3, 40)).toBe(60 + 3 * 3 + 4);
    expect(matrixBytes(mxfp4, 3, 40)).toBe(60 + 3 * 2);
  });

  it.each([
    // "Checkpoint Size 60.8GiB 12.8GiB", arXiv 2508.10925, table 1
    ['gpt-oss-120b', 60.8],
    ['gpt-oss-20b', 12.8],
  ])('%s takes the %d GiB of its checkpoint, attention in bfloat16', (id, gib) => {
    const weights = declaredWeights(findPreset(id)!.config)!;
    const { total } = weightBytes(presetArchitecture(id), { weights });
    expect(Math.abs(total / 2 ** 30 - gib)).toBeLessThan(0.05);
  });

  it('Kimi-K2-Thinking takes the 594 GB of its checkpoint: experts in int4 with a scale for 32', () => {
    const weights = declaredWeights(findPreset('moonshotai/Kimi-K2-Thinking')!.config)!;
    const { total } = weightBytes(presetArchitecture('kimi-k2-thinking'), { weights });
    expect(Math.abs(total / 1e9 - 594)).toBeLessThan(1);
  });

  it('leave modules unquantized that a checkpoint excludes in every layer, not those excluded in only one', () => {
    const quantization_config = { quant_method: 'modelopt', quant_algo: 'NVFP4' };
    const componentsFor = (ignore: string[]) =>
      declaredWeights({ num_hidden_layers: 2, quantization_config: { ...quantization_config, ignore } })
        ?.unquantizedComponents;
    expect(componentsFor(['model.layers.0.self_attn*', 'model.layers.1.self_attn*', 'lm_head'])).toEqual([
      'attention',
    ]);
    expect(componentsFor(['model.layers.0.self_attn*'])).toBeUndefined();
    expect(componentsFor(['*self_attn*', '*shared_experts*'])).toEqual(['attention', 'shared_experts']);
  });

  it('compute in nvfp4 with --dtype fp4, and take the size of the named format', () => {
    const named = (dtype: string) => storageOf({}, { dtype: parseDType(dtype) }).weights;
    expect([named('fp4').name, named('fp4').compute]).toEqual(['nvfp4', 'nvfp4']);
    expect([named('mxfp4').name, named('mxfp4').compute]).toEqual(['mxfp4', null]);
  });
});

describe('formats declared in a config.json', () => {
  it.each([
    [{ quant_method: 'gptq', bits: 4, group_size: 128 }, 'gptq-int4-g128'],
    [{ quant_method: 'awq', bits: 4, group_size: 128, zero_point: true }, 'awq-int4-g128'],
    [{ quant_method: 'bitsandbytes', load_in_4bit: true, bnb_4bit_quant_type: 'nf4' }, 'bnb-nf4'],
    [{ quant_method: 'fp8', weight_block_size: [128, 128] }, 'fp8-block128'],
    [{ quant_method: 'modelopt', quant_algo: 'NVFP4' }, 'nvfp4'],
    [{ quant_method: 'modelopt', quant_algo: 'FP8' }, 'fp8-tensor'],
    [compressed({ num_bits: 8, type: 'float', strategy: 'channel' }), 'fp8-row'],
    [compressed({ num_bits: 4, type: 'float', strategy: 'tensor_group', group_size: 16 }), 'nvfp4'],
    [compressed({ num_bits: 8, type: 'int', strategy: 'channel' }), 'int8-row'],
    [compressed({ num_bits: 3, type: 'int', strategy: 'group', group_size: 128 }), undefined],
    [{ quant_method: 'something-new' }, undefined],
    [{ quant_method: 'gptq', bits: 3, group_size: 128 }, undefined],
  ])('%j', (quantization_config, name) => {
    expect(declaredWeights({ torch_dtype: 'float16', quantization_config })?.name).toBe(name);
  });

  it('is its dtype without quantization, in old and new spelling, or unknown', () => {
    expect(declaredWeights({ torch_dtype: 'bfloat16' })?.name).toBe('bfloat16');
    expect(declaredDType({ dtype: 'float32' })).toBe('float32');
    expect(declaredDType({ text_config: { torch_dtype: 'float16' } })).toBe('float16');
    expect(declaredWeights({})).toBeNull();
  });
});

it('rejects unknown schemes, with the known ones in the error', () => {
  expect(parseScheme(' NVFP4 ')).toBe('nvfp4');
  expect(() => parseScheme('q4')).toThrow(InferscopeError);
});

it('sizes the rotary table', () => {
  // Llama-2: 4096 positions × 128 × 2 bytes.
  expect(rotaryTableBytes(presetArchitecture('llama-2-7b'))).toBe(1_048_576);
  expect(rotaryTableBytes(presetArchitecture('gpt2'))).toBe(0);
});
