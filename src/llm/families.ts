import type { ConfigFields } from './config-fields.js';
import { encoderFamilies } from './encoder-families.js';
import { gemma3nExtra } from './gemma3n.js';
import type { Family, MoeFields, Rule } from './family.js';

/**
 * Properties of each model family that its config.json does not state: biases, norms, tied embeddings, windows,
 * experts. Source: the configuration and modeling classes of Hugging Face transformers (5.23), one entry per
 * model_type. parameters.test.ts checks every entry's parameter count against those classes.
 */

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
const qwen2Vl: Family = { ...qwen2, name: 'Qwen2-VL' };
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
  // The text_config of gemma-3-4b and larger omits all of these.
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
  norms: (fields) => (fields.boolean('do_layer_norm_before', true) ? 'pre' : 'post'),
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

const deepseekV3: Family = { ...deepseekV2, name: 'DeepSeek V3', moe: { ...deepseekMoe, routerBias: true } };

const gptOss: Family = {
  ...llama,
  name: 'gpt-oss',
  qkvBias: { field: 'attention_bias', fallback: true },
  outputBias: { field: 'attention_bias', fallback: true },
  sinks: true,
  window: 'alternate',
  defaults: { head_dim: 64, sliding_window: 128 },
  moe: { ...mixtral.moe!, bias: true },
};
const llama4: Family = {
  ...llama,
  name: 'Llama 4',
  mlpBias: false,
  window: 'chunks',
  denseSize: 'intermediate_size_mlp',
  defaults: { head_dim: 128, attention_chunk_size: 8192, no_rope_layer_interval: 4 },
  moe: {
    experts: ['num_local_experts'],
    expertSize: 'intermediate_size',
    shared: { sizeField: 'intermediate_size', gate: false },
    layers: 'interleaved',
    routerBias: false,
  },
};
const qwen3Next: Family = {
  ...llama,
  name: 'Qwen3-Next',
  mlpBias: false,
  qkNorm: 'rmsnorm',
  outputGate: true,
  positions: { kind: 'rotary', fraction: 0.25 },
  moe: { ...qwen2Moe.moe! },
  recurrent: { form: 'gated DeltaNet', layers: 'interval' },
  defaults: { full_attention_interval: 4 },
};
const glm: Family = {
  ...llama,
  name: 'GLM-4',
  outputBias: false,
  mlpBias: false,
  positions: { kind: 'rotary', fraction: 0.5 },
};
const glm4Moe: Family = {
  ...glm,
  name: 'GLM-4-MoE',
  qkNorm: { field: 'use_qk_norm', kind: 'rmsnorm' },
  moe: { ...deepseekMoe, routerBias: true },
};
const minimaxM2: Family = {
  ...llama,
  ...plain,
  name: 'MiniMax-M2',
  qkNorm: { field: 'use_qk_norm', kind: 'rmsnorm', fallback: true },
  qkNormWide: true,
  moe: { ...mixtral.moe!, routerBias: { field: 'use_routing_bias', fallback: true } },
};
const olmo2: Family = {
  ...llama,
  name: 'OLMo 2',
  mlpBias: false,
  norms: 'post',
  qkNorm: 'rmsnorm',
  qkNormWide: true,
};
const olmo3: Family = {
  ...olmo2,
  name: 'OLMo 3',
  window: 'pattern',
  defaults: { sliding_window: 4096, sliding_window_pattern: 4 },
};
const olmoe: Family = {
  ...olmo2,
  name: 'OLMoE',
  norms: 'pre',
  moe: { ...mixtral.moe!, experts: ['num_experts'] },
};
const neoX: Family = {
  ...phi,
  name: 'GPT-NeoX',
  norms: (fields) => (fields.boolean('use_parallel_residual', true) ? 'parallel-two' : 'pre'),
  qkvBias: { field: 'attention_bias', fallback: true },
  outputBias: { field: 'attention_bias', fallback: true },
  lmHeadBias: false,
  qkNorm: 'none',
  positions: { kind: 'rotary', fraction: 0.25 },
};
const falconBias: Rule = { field: 'bias', fallback: false };
const falcon: Family = {
  ...neoX,
  name: 'Falcon',
  norms: falconNorms,
  qkvBias: falconBias,
  outputBias: falconBias,
  mlpBias: falconBias,
  tied: true,
  positions: { kind: 'rotary', fraction: 1 },
  kvHeads: (fields, headCount) => {
    const isNew = fields.boolean('new_decoder_architecture', false);
    const isShared = fields.boolean('multi_query', true);
    const kvHeads = fields.integerOrNull('num_kv_heads') ?? headCount;
    return isNew ? kvHeads : isShared ? 1 : headCount;
  },
};
const granite: Family = { ...llama, name: 'Granite' };
const graniteMoe: Family = { ...granite, name: 'Granite-MoE', mlpBias: false, moe: mixtral.moe };
const graniteShared: Family = {
  ...graniteMoe,
  moe: { ...mixtral.moe!, shared: { sizeField: 'shared_intermediate_size', gate: false }, layers: 'counted' },
};
const mamba: Family = {
  ...llama,
  ...plain,
  name: 'Mamba',
  norms: 'single',
  tied: true,
  recurrent: { form: 'Mamba', layers: 'every' },
};
const gemma3n: Family = {
  ...gemma3,
  name: 'Gemma 3n',
  extra: gemma3nExtra,
  defaults: {
    head_dim: 256,
    sliding_window: 512,
    sliding_window_pattern: 5,
    num_kv_shared_layers: 15,
    hidden_size_per_layer_input: 256,
    vocab_size_per_layer_input: 262_144,
    altup_num_inputs: 4,
    laurel_rank: 64,
  },
};

/**
 * Falcon 40B has separate norms for attention and MLP, 7B and 11B one for both, and the oldest has them in sequence.
 */
function falconNorms(fields: ConfigFields): 'pre' | 'parallel' | 'parallel-two' {
  const isNew = fields.boolean('new_decoder_architecture', false);
  const isParallel = fields.boolean('parallel_attn', true);
  const inParallel = fields.integerOrNull('num_ln_in_parallel_attn') ?? (isNew ? 2 : 1);
  if (isNew && inParallel === 2) return 'parallel-two';
  return isNew || isParallel ? 'parallel' : 'pre';
}

/** Families by the `model_type` of config.json (of its text_config if it has one). */
export const families: Readonly<Record<string, Family>> = {
  llama,
  mistral,
  qwen2,
  qwen2_vl: qwen2Vl,
  qwen2_vl_text: qwen2Vl,
  qwen2_5_vl: qwen2Vl,
  qwen2_5_vl_text: qwen2Vl,
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
  deepseek_v3: deepseekV3,
  kimi_k2: deepseekV3,
  gpt_oss: gptOss,
  llama4_text: llama4,
  qwen3_next: qwen3Next,
  qwen3_5_text: { ...qwen3Next, name: 'Qwen3.5', moe: null },
  qwen3_5_moe_text: { ...qwen3Next, name: 'Qwen3.5', moe: { ...qwen2Moe.moe!, layers: 'every' } },
  glm,
  glm4: { ...glm, norms: 'sandwich' },
  glm4_moe: glm4Moe,
  minimax_m2: minimaxM2,
  olmo2,
  olmo3,
  olmoe,
  gpt_neox: neoX,
  falcon,
  granite,
  granitemoe: graniteMoe,
  granitemoeshared: graniteShared,
  granitemoehybrid: {
    ...graniteShared,
    name: 'Granite 4',
    recurrent: { form: 'Mamba-2', layers: 'layer-types' },
  },
  gemma3n_text: gemma3n,
  mamba,
  mamba2: { ...mamba, name: 'Mamba-2', tied: false, recurrent: { form: 'Mamba-2', layers: 'every' } },
  jamba: {
    ...llama,
    ...plain,
    name: 'Jamba',
    positions: { kind: 'rotary', fraction: 0 },
    moe: { ...mixtral.moe!, experts: ['num_experts'], layers: 'period' },
    recurrent: { form: 'Mamba', layers: 'period', innerNorms: true },
  },
  ...encoderFamilies,
};

/** Classes of transformers with names that are not the model_type without underscores. */
const classNames: Readonly<Record<string, string>> = {
  llama4_text: 'Llama4',
  gemma3n_text: 'Gemma3n',
  qwen3_5_text: 'Qwen3_5',
  qwen3_5_moe_text: 'Qwen3_5Moe',
};

/** The model_type of a modeling class (DeepseekV3ForCausalLM: deepseek_v3); null if unknown. */
export function familyOfClass(className: string): string | null {
  const stem = /^(.*?)(LMHeadModel|For(CausalLM|ConditionalGeneration))$/.exec(className)?.[1]?.toLowerCase();
  const modelType = Object.keys(families).find(
    (type) => (classNames[type] ?? type.replaceAll('_', '')).toLowerCase() === stem,
  );
  return modelType ?? null;
}
