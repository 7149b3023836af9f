/**
 * What each model family adds to its config.json by construction: biases, norms, tied embeddings, windows, experts.
 * Source: the configuration and modelling classes of Hugging Face transformers (5.17), one entry a model_type; the
 * parameter counts of every entry are checked against those classes in parameters.test.ts.
 */

/** A fixed property of the family, or a config field with the family's default. */
export type Rule = boolean | { field: string; fallback: boolean };

/**
 * pre: norm before attention and before the MLP. sandwich: before and after both (Gemma 2, 3). parallel: one norm
 * feeds attention and MLP side by side (phi-2). post: after each residual addition (OPT-350m).
 */
export type NormPlacement = 'pre' | 'sandwich' | 'parallel' | 'post';

/**
 * Which layers attend through a sliding window when `layer_types` does not say it. all: every layer, when the window
 * is set. upper: layers from max_window_layers on, when use_sliding_window. switched: every layer, when
 * use_sliding_window. alternate: even layers. pattern: all but every sliding_window_pattern-th.
 */
export type WindowRule = 'none' | 'all' | 'upper' | 'switched' | 'alternate' | 'pattern';

export interface MoeFields {
  experts: readonly string[];
  expertSize: string;
  /** A size of its own, a count of experts of the routed size, or nothing. */
  shared: { sizeField: string; gate: boolean } | { countField: string } | null;
  /** every: all layers. step: decoder_sparse_step and mlp_only_layers. first-dense: first_k_dense_replace, moe_layer_freq. */
  layers: 'every' | 'step' | 'first-dense';
  /** A bias per expert that only steers the choice (DeepSeek V3 e_score_correction_bias). */
  routerBias: boolean;
}

export interface Family {
  name: string;
  attention: 'grouped' | 'latent';
  norm: 'rmsnorm' | 'layernorm';
  norms: NormPlacement;
  gated: boolean;
  qkvBias: Rule;
  outputBias: Rule;
  mlpBias: Rule;
  lmHeadBias: boolean;
  qkNorm: 'none' | 'rmsnorm' | { field: string; kind: 'layernorm' };
  tied: boolean;
  /** Learned positions hold max positions + offset rows; rotary turns this share of the head dimension. */
  positions: { kind: 'rotary'; fraction: number } | { kind: 'learned'; offset: number };
  window: WindowRule;
  moe: MoeFields | null;
  /** Values the family's class supplies when a published config.json leaves them out. */
  defaults: Readonly<Record<string, number>>;
}

const llama: Family = {
  name: 'Llama',
  attention: 'grouped',
  norm: 'rmsnorm',
  norms: 'pre',
  gated: true,
  qkvBias: { field: 'attention_bias', fallback: false },
  outputBias: { field: 'attention_bias', fallback: false },
  mlpBias: { field: 'mlp_bias', fallback: false },
  lmHeadBias: false,
  qkNorm: 'none',
  tied: false,
  positions: { kind: 'rotary', fraction: 1 },
  window: 'none',
  moe: null,
  defaults: {},
};

const plain = { qkvBias: false, outputBias: false, mlpBias: false } as const;
const mistral: Family = {
  ...llama,
  ...plain,
  name: 'Mistral',
  window: 'all',
  defaults: { num_key_value_heads: 8, sliding_window: 4096 },
};
const qwenWindow = { window: 'upper', defaults: { sliding_window: 4096, max_window_layers: 28 } } as const;
const qwen2: Family = { ...llama, ...plain, ...qwenWindow, name: 'Qwen2', qkvBias: true };
const qwen3: Family = { ...llama, ...qwenWindow, mlpBias: false, name: 'Qwen3', qkNorm: 'rmsnorm' };
const gemma: Family = { ...llama, mlpBias: false, name: 'Gemma', tied: true, defaults: { head_dim: 256 } };
const gemma2: Family = {
  ...gemma,
  name: 'Gemma 2',
  norms: 'sandwich',
  window: 'alternate',
  defaults: { head_dim: 256, sliding_window: 4096 },
};
const gemma3: Family = {
  ...gemma2,
  name: 'Gemma 3',
  qkNorm: 'rmsnorm',
  window: 'pattern',
  // The text_config of gemma-3-4b and larger leaves all of these out.
  defaults: {
    head_dim: 256,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    vocab_size: 262_208,
    sliding_window: 4096,
    sliding_window_pattern: 6,
  },
};
const phi: Family = {
  ...llama,
  name: 'Phi',
  norm: 'layernorm',
  norms: 'parallel',
  gated: false,
  qkvBias: true,
  outputBias: true,
  mlpBias: true,
  lmHeadBias: true,
  qkNorm: { field: 'qk_layernorm', kind: 'layernorm' },
  positions: { kind: 'rotary', fraction: 0.5 },
};
const gpt2: Family = {
  ...phi,
  name: 'GPT-2',
  norms: 'pre',
  lmHeadBias: false,
  qkNorm: 'none',
  tied: true,
  positions: { kind: 'learned', offset: 0 },
};
const optBias: Rule = { field: 'enable_bias', fallback: true };
const opt: Family = {
  ...gpt2,
  name: 'OPT',
  qkvBias: optBias,
  outputBias: optBias,
  mlpBias: optBias,
  positions: { kind: 'learned', offset: 2 },
};
const mixtral: Family = {
  ...mistral,
  name: 'Mixtral',
  defaults: { num_key_value_heads: 8 },
  moe: {
    experts: ['num_local_experts', 'num_experts'],
    expertSize: 'intermediate_size',
    shared: null,
    layers: 'every',
    routerBias: false,
  },
};
const qwen2Moe: Family = {
  ...qwen2,
  name: 'Qwen2-MoE',
  qkvBias: { field: 'qkv_bias', fallback: true },
  moe: {
    experts: ['num_experts', 'num_local_experts'],
    expertSize: 'moe_intermediate_size',
    shared: { sizeField: 'shared_expert_intermediate_size', gate: true },
    layers: 'step',
    routerBias: false,
  },
};
const qwen3Moe: Family = {
  ...qwen3,
  name: 'Qwen3-MoE',
  window: 'switched',
  moe: {
    experts: ['num_experts', 'num_local_experts'],
    expertSize: 'moe_intermediate_size',
    shared: null,
    layers: 'step',
    routerBias: false,
  },
};
const deepseekMoe: MoeFields = {
  experts: ['n_routed_experts', 'num_local_experts'],
  expertSize: 'moe_intermediate_size',
  shared: { countField: 'n_shared_experts' },
  layers: 'first-dense',
  routerBias: false,
};
const deepseekV2: Family = {
  ...llama,
  name: 'DeepSeek V2',
  attention: 'latent',
  moe: deepseekMoe,
};

/** Families by the `model_type` of config.json (of its text_config where it has one). */
export const families: Readonly<Record<string, Family>> = {
  llama,
  mistral,
  qwen2,
  qwen3,
  gemma,
  gemma2,
  gemma3,
  gemma3_text: gemma3,
  phi,
  phi3: { ...llama, ...plain, name: 'Phi-3', window: 'all' },
  gpt2,
  opt,
  mixtral,
  qwen2_moe: qwen2Moe,
  qwen3_moe: qwen3Moe,
  deepseek_v2: deepseekV2,
  deepseek_v3: { ...deepseekV2, name: 'DeepSeek V3', moe: { ...deepseekMoe, routerBias: true } },
};
