import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { estimateDocumentSchema } from '../model/documents/estimate.js';
import { InferscopeError } from '../model/errors.js';
import { layersSummary } from '../report/terminal/layers.js';
import { testFolder } from '../session/test-folder.js';
import { estimate, type EstimateOptions } from './estimate.js';

const options = (change: Partial<EstimateOptions>): EstimateOptions => ({
  model: 'tinyllama-1.1b',
  batchSize: 1,
  inputLen: 128,
  phase: 'prefill',
  ...change,
});

const codeOf = async (run: Promise<unknown>): Promise<string> => {
  const error: unknown = await run.catch((thrown: unknown) => thrown);
  return error instanceof InferscopeError ? error.code : 'none';
};

describe('estimate', () => {
  it('Llama 3.1 8B: the published parameter count, bfloat16 from its config, 128 KiB of KV cache a token', async () => {
    const made = await estimate(options({ model: 'llama-3.1-8b' }));
    expect(estimateDocumentSchema.parse(made)).toEqual(made);
    // model.safetensors.index.json of meta-llama/Llama-3.1-8B: total_size 16 060 522 496 in bfloat16.
    expect(made.data).toMatchObject({
      weight_format: 'bfloat16',
      parameters: { total: 8_030_261_248, active: 8_030_261_248 },
      weight_bytes: 16_060_522_496,
      // 2 · 32 layers · 8 heads · 128 · 2 B.
      kv_cache_bytes_per_token: 131_072,
      layers: null,
    });
    expect(made.issues.map(({ code }) => code)).toContain('memory_calculator_planned');
  });

  it('TinyLlama prefill by hand: gate and up projection of 22 layers, totals of all parts', async () => {
    const made = await estimate(options({ layers: true, batchSize: 2, inputLen: 100 }));
    expect(estimateDocumentSchema.parse(made)).toEqual(made);
    const { groups, outside, total } = made.data.layers!;
    const gateUp = groups[0]!.modules.find(({ module }) => module === 'gate_up_proj');
    expect(gateUp).toMatchObject({
      parameters: 22 * 2 * 2048 * 5632,
      flops: 22 * 2 * 200 * 2 * 2048 * 5632,
      activation_out_bytes: 22 * 200 * 2 * 5632 * 2,
    });
    for (const key of ['parameters', 'flops', 'bytes'] as const) {
      const parts = [...groups.flatMap(({ modules }) => modules), ...outside];
      expect(parts.reduce((sum, part) => sum + part[key], 0)).toBe(total[key]);
    }
    expect(total.parameters).toBe(made.data.parameters.total);
  });

  it('decode: one token a sequence after the prompt, or after --context-len', async () => {
    const shape = async (change: Partial<EstimateOptions>) =>
      (await estimate(options({ layers: true, phase: 'decode', batchSize: 3, ...change }))).data.layers!;
    const after = await shape({});
    expect([after.new_tokens, after.context_tokens]).toEqual([1, 128]);
    // Each sequence reads its 128 cached tokens: 2 · 22 layers · 4 heads · 64 · 2 B a token.
    expect(after.total.kv_read_bytes).toBe(3 * 128 * 2 * 22 * 4 * 64 * 2);
    expect((await shape({ contextLen: 0 })).total.kv_read_bytes).toBe(0);
  });

  it('an engine preset, a folder, its config.json and a dtype', async () => {
    const preset = await estimate(options({ model: 'llama-24m', dtype: 'float32' }));
    expect(preset.data.parameters.total).toBe(24_125_952);
    expect(preset.data.weight_bytes).toBe(24_125_952 * 4);
    // Its config states no dtype.
    expect((await estimate(options({ model: 'llama-24m' }))).data.weight_format).toBe('float16');
    const folder = testFolder();
    const config = {
      model_type: 'llama',
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      intermediate_size: 192,
      vocab_size: 512,
      tie_word_embeddings: true,
      torch_dtype: 'float32',
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    for (const model of [folder, join(folder, 'config.json')]) {
      const { data } = await estimate(options({ model }));
      expect([data.parameters.total, data.weight_bytes]).toEqual([131_392, 525_568]);
    }
    const int4 = await estimate(options({ model: folder, dtype: 'int4' }));
    // Linear layers: half a byte and 4 bytes for 32; 32 768 embedding and 320 norm parameters stay float32.
    const linear = 2 * (4096 + 2048 + 2048 + 4096 + 3 * 64 * 192);
    expect(int4.data.weight_bytes).toBe(linear * (0.5 + 4 / 32) + (32_768 + 320) * 4);
  });

  it('refuses what it cannot know, by code', async () => {
    expect(await codeOf(estimate(options({ model: 'llama-3.1-9b' })))).toBe('E_MODEL_NOT_FOUND');
    const folder = testFolder();
    expect(await codeOf(estimate(options({ model: folder })))).toBe('E_MODEL_NOT_FOUND');
    writeFileSync(join(folder, 'config.json'), '{"model_type": "frobnicator"}');
    expect(await codeOf(estimate(options({ model: folder })))).toBe('E_MODEL_ARCHITECTURE');
    writeFileSync(join(folder, 'config.json'), '[1]');
    expect(await codeOf(estimate(options({ model: folder })))).toBe('E_MODEL_CONFIG');
  });

  it.each(['llama-3.1-70b', 'deepseek-v3', 'gemma-3-27b'])('%s fits 80 columns', async (model) => {
    const made = await estimate(options({ model, layers: true, batchSize: 64, inputLen: 8192 }));
    const text = stripVTControlCharacters(layersSummary(made, { width: 200 }));
    for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
  });
});
