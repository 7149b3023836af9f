import { describe, expect, it } from 'vitest';
import type { ModelTensor } from '../model/model-facts.js';
import { configOfWeights } from './config-of-weights.js';
import { countParameters } from './parameters.js';
import { readArchitecture } from './read-architecture.js';

const tensor = (path: string, shape: number[], count = 1, module = 'Linear'): ModelTensor => ({
  path,
  module,
  type: null,
  shape,
  dtype: 'bfloat16',
  bytes: 2 * shape.reduce((product, value) => product * value, 1),
  count,
});
const embedding = tensor('embed.weight', [1000, 64], 1, 'Embedding');

describe('configOfWeights', () => {
  it('reads a gated decoder with grouped attention', () => {
    const weights = [
      embedding,
      tensor('layers.*.attn.wq', [64, 64], 4),
      tensor('layers.*.attn.wk', [32, 64], 4),
      tensor('layers.*.attn.wv', [32, 64], 4),
      tensor('layers.*.attn.wo', [64, 64], 4),
      tensor('layers.*.mlp.w1', [160, 64], 4),
      tensor('layers.*.mlp.w3', [160, 64], 4),
      tensor('layers.*.mlp.w2', [64, 160], 4),
      tensor('head', [1000, 64]),
    ];
    const config = configOfWeights(weights)!;
    expect(config).toMatchObject({
      model_type: 'llama',
      hidden_size: 64,
      num_hidden_layers: 4,
      intermediate_size: 160,
      tie_word_embeddings: false,
    });
    const elements = weights.reduce((sum, { shape, count }) => sum + shape[0]! * shape[1]! * count, 0);
    // Norms are not matrices.
    expect(countParameters(readArchitecture(config)).total - elements).toBe(64 * 9);
  });

  it("reads PyTorch's own encoder layers with an embedding outside of them", () => {
    const config = configOfWeights([
      tensor('layers.*.self_attn.in_proj_weight', [96, 32], 2, 'MultiheadAttention'),
      tensor('layers.*.self_attn.out_proj', [32, 32], 2, 'NonDynamicallyQuantizableLinear'),
      tensor('layers.*.linear1', [64, 32], 2),
      tensor('layers.*.linear2', [32, 64], 2),
    ]);
    expect(config).toMatchObject({
      model_type: 'phi',
      hidden_size: 32,
      intermediate_size: 64,
      num_hidden_layers: 2,
    });
  });

  it('reads the decoder next to a vision tower', () => {
    const layers = (prefix: string, width: number, count: number) => [
      ...['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((name) =>
        tensor(`${prefix}.*.attn.${name}`, [width, width], count),
      ),
      tensor(`${prefix}.*.mlp.gate_proj`, [2 * width, width], count),
      tensor(`${prefix}.*.mlp.up_proj`, [2 * width, width], count),
      tensor(`${prefix}.*.mlp.down_proj`, [width, 2 * width], count),
    ];
    const towers = [...layers('model.visual.blocks', 32, 3), ...layers('model.text.layers', 64, 2)];
    const vocabulary = (path: string) => tensor(path, [1000, 64], 1, 'Embedding');
    expect(configOfWeights([...towers, vocabulary('model.text.embed_tokens.weight')])).toMatchObject({
      hidden_size: 64,
      num_hidden_layers: 2,
    });
    expect(configOfWeights([...towers, vocabulary('model.embed_tokens.weight')])).toBeNull();
  });

  it('reads BERT and GPT-2', () => {
    const bert = configOfWeights([
      embedding,
      tensor('embeddings.position_embeddings.weight', [512, 64], 1, 'Embedding'),
      ...['query', 'key', 'value'].map((name) =>
        tensor(`encoder.layer.*.attention.self.${name}`, [64, 64], 3),
      ),
      tensor('encoder.layer.*.attention.output.dense', [64, 64], 3),
      tensor('encoder.layer.*.intermediate.dense', [256, 64], 3),
      tensor('encoder.layer.*.output.dense', [64, 256], 3),
      tensor('pooler.dense', [64, 64]),
    ]);
    expect(bert).toMatchObject({ hidden_size: 64, intermediate_size: 256, num_hidden_layers: 3 });
    const gpt2 = configOfWeights([
      embedding,
      tensor('h.*.attn.c_attn.weight', [64, 192], 3, 'Conv1D'),
      tensor('h.*.attn.c_proj.weight', [64, 64], 3, 'Conv1D'),
      tensor('h.*.mlp.c_fc.weight', [64, 256], 3, 'Conv1D'),
      tensor('h.*.mlp.c_proj.weight', [256, 64], 3, 'Conv1D'),
    ]);
    expect(gpt2).toMatchObject({ hidden_size: 64, intermediate_size: 256, tie_word_embeddings: true });
  });

  it('returns null for experts, two stacks, and widths that do not match', () => {
    const attention = [tensor('layers.*.qkv', [192, 64], 2), tensor('layers.*.out', [64, 64], 2)];
    const expert = [
      tensor('layers.*.experts.*.up', [128, 64], 8),
      tensor('layers.*.experts.*.down', [64, 128], 8),
    ];
    expect(configOfWeights([embedding, ...attention, ...expert])).toBeNull();
    const stack = (name: string) =>
      attention.map((tensor) => ({ ...tensor, path: tensor.path.replace('layers', `${name}.layers`) }));
    expect(configOfWeights([embedding, ...stack('encoder'), ...stack('decoder')])).toBeNull();
    expect(configOfWeights([{ ...embedding, shape: [1000, 48] }, ...attention])).toBeNull();
    expect(configOfWeights([])).toBeNull();
  });
});
