import { architectureIssues } from './architecture-issues.js';
import { describe, expect, it } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import type { GroupedAttention } from './architecture.js';
import { readArchitecture } from './read-architecture.js';
import { countParameters } from './parameters.js';
import { findBaseOf, findPreset, presetArchitecture, presets } from './presets.js';

const llama = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 100,
};

function failure(run: () => unknown): InferscopeError {
  try {
    run();
  } catch (error) {
    if (error instanceof InferscopeError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

function windowsOf(config: Record<string, unknown>): (number | null)[] {
  return readArchitecture(config).layers.map(({ attention }) => attention.window);
}

describe('readArchitecture', () => {
  it('falls back to D / H, to all heads, and to the published defaults', () => {
    const attention = readArchitecture(llama).layers[0]?.attention as GroupedAttention;
    expect(attention).toMatchObject({ headDim: 16, kvHeadCount: 4, window: null, qkvBias: false });
    // The complete text_config of google/gemma-3-4b-pt; the class supplies the other values.
    const gemma = readArchitecture({
      model_type: 'gemma3',
      text_config: {
        hidden_size: 2560,
        intermediate_size: 10_240,
        model_type: 'gemma3_text',
        num_hidden_layers: 34,
        rope_scaling: { factor: 8, rope_type: 'linear' },
        sliding_window: 1024,
      },
      vision_config: { hidden_size: 1152 },
    });
    expect(gemma.layers[0]?.attention).toMatchObject({ headCount: 8, kvHeadCount: 4, headDim: 256 });
    expect(gemma).toMatchObject({ vocabSize: 262_208, tiedEmbeddings: true, partOfLarger: true });
    // Every analysis that sizes the model warns, so that 13.5 GB of LLaVA's decoder are not taken for the whole model.
    const warned = architectureIssues(gemma).map(({ code, severity }) => [code, severity]);
    expect(warned).toContainEqual(['decoder_only', 'warning']);
    // The 4,300,079,472 of the published files minus vision tower (416,866,032) and projector (1152·2560 + 1152).
    expect(countParameters(gemma).total).toBe(4_300_079_472 - 416_866_032 - (1152 * 2560 + 1152));
  });

  it('reads multi-query attention and partial rotary, old and new spelling', () => {
    expect(presetArchitecture('gemma-2b').layers[0]?.attention).toMatchObject({
      kvHeadCount: 1,
      headDim: 256,
    });
    expect(presetArchitecture('phi-2').layers[0]?.attention).toMatchObject({ headDim: 80, rotaryDim: 32 });
    const rope = { rope_type: 'default', partial_rotary_factor: 0.75 };
    const a = readArchitecture({ ...llama, model_type: 'phi3', rope_parameters: rope });
    expect(a.layers[0]?.attention).toMatchObject({ rotaryDim: 12 });
  });

  it('places experts as the modeling classes do', () => {
    const kinds = (id: string): string =>
      presetArchitecture(id)
        .layers.map(({ mlp }) => mlp.kind[0])
        .join('');
    expect(kinds('deepseek-v3')).toBe('ddd' + 'm'.repeat(58));
    expect(kinds('mixtral-8x7b')).toBe('m'.repeat(32));
    const qwen = { ...findPreset('qwen3-30b-a3b')?.config, num_hidden_layers: 6 };
    const sparse = readArchitecture({ ...qwen, decoder_sparse_step: 2, mlp_only_layers: [3] });
    expect(sparse.layers.map(({ mlp }) => mlp.kind[0]).join('')).toBe('dmdddm');
  });
});

describe('sliding windows', () => {
  const sliding = { ...llama, num_hidden_layers: 6, sliding_window: 8, num_key_value_heads: null };

  it('follow the family where the config has no layer_types', () => {
    expect(windowsOf({ ...sliding, model_type: 'mistral' })).toEqual([8, 8, 8, 8, 8, 8]);
    expect(windowsOf({ ...sliding, model_type: 'llama' })).toEqual([null, null, null, null, null, null]);
    expect(windowsOf({ ...sliding, model_type: 'gemma2' })).toEqual([8, null, 8, null, 8, null]);
    expect(windowsOf({ ...sliding, model_type: 'gemma3_text' })).toEqual([8, 8, 8, 8, 8, null]);
  });

  it('are off in Qwen unless enabled, and then start at max_window_layers', () => {
    const qwen = { ...sliding, model_type: 'qwen2', max_window_layers: 4 };
    expect(windowsOf(qwen)).toEqual([null, null, null, null, null, null]);
    expect(windowsOf({ ...qwen, use_sliding_window: true })).toEqual([null, null, null, null, 8, 8]);
  });

  it('are none if the config says null, and 4096 in a Mistral config without the field', () => {
    expect(windowsOf({ ...sliding, model_type: 'mistral', sliding_window: null })[0]).toBeNull();
    expect(windowsOf({ ...llama, model_type: 'mistral', num_key_value_heads: 2 })).toEqual([4096, 4096]);
  });

  it('follow layer_types if present', () => {
    const layer_types = ['full_attention', 'sliding_attention'];
    const config = { ...llama, model_type: 'gemma3_text', sliding_window: 8, layer_types };
    expect(windowsOf(config)).toEqual([null, 8]);
    const error = failure(() => readArchitecture({ ...config, layer_types: ['full_attention'] }));
    expect(error.parts.what).toContain('layer_types');
    const linear = ['linear_attention', 'full_attention'];
    expect(failure(() => readArchitecture({ ...config, layer_types: linear })).code).toBe('E_MODEL_CONFIG');
  });
});

describe('invalid configs', () => {
  it('an unknown architecture error names the known ones, and suggests a family only by its class', () => {
    const error = failure(() => readArchitecture({ ...llama, model_type: 'qwen33' }));
    expect(error.code).toBe('E_MODEL_ARCHITECTURE');
    expect(error.exitCode).toBe(5);
    expect(error.parts.what).toContain('"qwen33"');
    expect(error.parts.why).toContain('deepseek_v3');
    // Similar spelling does not imply the same arithmetic.
    expect(error.parts.fix).not.toContain('"qwen3"');
    const miniMax = failure(() => readArchitecture({ ...llama, model_type: 'MiniMax-M3' }));
    expect(miniMax.parts.fix).not.toContain('mistral');
    const fix = (architectures: string[]) =>
      failure(() => readArchitecture({ ...llama, model_type: 'new', architectures })).parts.fix;
    expect(fix(['DeepseekV3ForCausalLM'])).toContain('"model_type": "deepseek_v3"');
    expect(fix(['Qwen3MoeForCausalLM'])).toContain('"qwen3_moe"');
    expect(fix(['GraniteMoeHybridForCausalLM'])).toContain('"granitemoehybrid"');
    expect(fix(['Llama4ForConditionalGeneration'])).toContain('"llama4_text"');
    expect(fix(['NewForCausalLM'])).not.toContain('"model_type": ');
    // Names of Object.prototype are not families.
    expect(failure(() => readArchitecture({ model_type: 'constructor' })).code).toBe('E_MODEL_ARCHITECTURE');
  });

  const bad: [string, Record<string, unknown>, string, string][] = [
    ['no hidden size', { hidden_size: undefined }, '"hidden_size"', 'has no'],
    ['no model type', { model_type: undefined }, '"model_type"', 'has no'],
    ['a negative layer count', { num_hidden_layers: -2 }, '"num_hidden_layers"', '-2'],
    ['a billion layers', { num_hidden_layers: 1e9 }, '"num_hidden_layers"', '1000000000'],
    ['a fractional width', { intermediate_size: 12.5 }, '"intermediate_size"', '12.5'],
    ['a width as text', { intermediate_size: '128' }, '"intermediate_size"', '"128"'],
    ['KV heads that do not divide the heads', { num_key_value_heads: 3 }, '"num_key_value_heads"', '3'],
    ['heads that do not divide D', { num_attention_heads: 5 }, '"num_attention_heads"', '5'],
    ['tying that is not a boolean', { tie_word_embeddings: 'yes' }, '"tie_word_embeddings"', '"yes"'],
    [
      'more rotated dimensions than the head has',
      { partial_rotary_factor: 1.5 },
      '"partial_rotary_factor"',
      '1.5',
    ],
    [
      'more experts per token than experts',
      { model_type: 'mixtral', num_key_value_heads: 2, num_local_experts: 4, num_experts_per_tok: 5 },
      '"num_experts_per_tok"',
      '5',
    ],
    ['a text_config that is a list', { text_config: [] }, '"text_config"', '[]'],
  ];
  it.each(bad)('%s is an error that names the field and its value', (_, change, field, value) => {
    const error = failure(() => readArchitecture({ ...llama, ...change }));
    expect(error.code).toBe('E_MODEL_CONFIG');
    expect(error.parts.what).toContain(field);
    expect(error.parts.what).toContain(value);
    expect(error.parts.why).not.toBe('');
    expect(error.parts.fix).toContain(field);
  });
});

describe('keys that a family does not read', () => {
  const keys = (config: Record<string, unknown>) => readArchitecture({ ...llama, ...config }).unreadKeys;

  it('are named if they would change sizes', () => {
    expect(keys({ num_local_experts: 8, num_experts_per_tok: 2 })).toEqual([
      'num_local_experts',
      'num_experts_per_tok',
    ]);
    expect(keys({ layer_types: ['linear_attention', 'full_attention'], linear_num_value_heads: 4 })).toEqual([
      'layer_types',
      'linear_num_value_heads',
    ]);
    expect(keys({ num_nextn_predict_layers: 1, n_shared_experts: 1, sliding_window: 4096 })).toHaveLength(3);
  });

  it('are not named if they change nothing', () => {
    const harmless = {
      num_experts: 0,
      sliding_window: null,
      layer_types: ['full_attention', 'full_attention'],
    };
    expect(keys({ ...harmless, rope_theta: 1e4, attention_dropout: 0.1, head_dim: 16 })).toEqual([]);
  });

  it('are none in the presets, except layers of multi-token prediction', () => {
    const found = presets.flatMap(({ id, config }) =>
      readArchitecture(config).unreadKeys.map((key) => `${id} ${key}`),
    );
    expect(found).toEqual(
      ['glm-4.5-air', 'glm-4.5', 'glm-4.6'].map((id) => `${id} num_nextn_predict_layers`),
    );
  });
});

describe('presets', () => {
  it('are found by id and by hub id, in any case', () => {
    expect(findPreset('Llama-2-7B')?.hub_id).toBe('meta-llama/Llama-2-7b-hf');
    expect(findPreset('mistralai/mistral-7b-v0.1')?.id).toBe('mistral-7b');
    expect(findPreset('nothing')).toBeNull();
  });

  it('are the base of tuned models, by owner and words of the name', () => {
    const base = (name: string) => findBaseOf(name)?.id ?? null;
    expect(base('Qwen/Qwen2.5-7B-Instruct')).toBe('qwen2.5-7b');
    expect(base('Qwen2.5-7B-Instruct')).toBe('qwen2.5-7b');
    expect(base('meta-llama/Llama-3.1-8B-Instruct')).toBe('llama-3.1-8b');
    expect(base('meta-llama/Llama-2-7b-chat-hf')).toBe('llama-2-7b');
    expect(base('mistralai/Mistral-7B-Instruct-v0.3')).toBe('mistral-7b-v0.3');
    expect(base('google/gemma-2-2b-it')).toBe('gemma-2-2b');
    expect(base('moonshotai/Kimi-K2-Instruct-0905')).toBe('kimi-k2');
    expect(base('Qwen/Qwen3-30B-A3B-Instruct-2507')).toBe('qwen3-30b-a3b');
    // Renamed models, and later models of the same shape.
    expect(base('meta-llama/Meta-Llama-3.1-8B-Instruct')).toBe('llama-3.1-8b');
    expect(base('meta-llama/Llama-3.3-70B-Instruct')).toBe('llama-3.1-70b');
    expect(base('deepseek-ai/DeepSeek-R1')).toBe('deepseek-v3');
    expect(base('allenai/Olmo-3-7B-Think')).toBe('olmo-3-7b');
    expect(base('ai21labs/AI21-Jamba-Mini-1.6')).toBe('jamba-mini');
    expect(base('ai21labs/AI21-Jamba-1.5-Mini')).toBe('jamba-mini');
    expect(base('ibm-granite/granite-3.3-8b-instruct')).toBe('granite-3.3-8b');
    expect(base('granite-3.3-2b-base')).toBe('granite-3.3-2b');
    // Its experts are stored in int4, unlike the base's fp8.
    expect(findPreset('moonshotai/Kimi-K2-Thinking')?.id).toBe('kimi-k2-thinking');
    // Other shapes, storage or owners.
    for (const unrelated of [
      'Qwen/Qwen2.5-7B-Instruct-AWQ',
      'zai-org/GLM-4-9B-Chat',
      'mistralai/Mistral-7B-Instruct-v0.2',
      'someone/Qwen2.5-7B-Instruct',
      'deepseek-ai/DeepSeek-R1-Distill-Qwen-7B',
      'Qwen/Qwen2.5-Coder-7B-Instruct',
    ]) {
      expect(base(unrelated)).toBeNull();
    }
  });

  it('have unique names, and a tuned model has one base', () => {
    const names = presets.flatMap(({ id, hub_id, sameShape }) => [id, hub_id, ...sameShape]);
    const duplicates = names
      .map((name) => name.toLowerCase())
      .filter((name, i, all) => all.indexOf(name) !== i);
    expect(duplicates).toEqual([]);
    for (const { id, hub_id, sameShape } of presets) {
      if (id === 'kimi-k2-thinking') continue; // Named by its tuning, so it is not a base.
      for (const name of [hub_id, ...sameShape]) {
        expect(findBaseOf(name)?.id, name).toBe(id);
        expect(findBaseOf(name.split('/')[1]!)?.id, name).toBe(id);
      }
    }
  });

  it('are not guessed from spelling or words of a name', () => {
    for (const name of ['jamba-1.5-mini', 'llama-4-scout', 'minimax-m3', 'granite-3.9-8b', 'llama-2-8b']) {
      expect(findBaseOf(name), name).toBeNull();
      const error = failure(() => presetArchitecture(name));
      expect(error.code).toBe('E_MODEL_NOT_FOUND');
      expect(error.parts.fix).toBe("Use a preset or give the model's config.json.");
    }
  });
});
