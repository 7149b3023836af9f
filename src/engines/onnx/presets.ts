/**
 * Small Llama models for a machine without a GPU, as config.json objects. Dimensions follow public small models
 * (MiniMind2-small is 512 wide with 8 layers, stories110M 768 with 12), with grouped-query attention as in current
 * models, and vocabularies small enough that most of the work is in the layers.
 */
const llama = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_act: 'silu',
  head_dim: 64,
  num_key_value_heads: 4,
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  attention_bias: false,
  mlp_bias: false,
  tie_word_embeddings: true,
  bos_token_id: 1,
  eos_token_id: 2,
};

export const enginePresets: Record<string, Record<string, unknown>> = {
  /** 24,125,952 parameters, 8.7 % of them the embedding. */
  'llama-24m': {
    ...llama,
    hidden_size: 512,
    intermediate_size: 1280,
    num_hidden_layers: 8,
    num_attention_heads: 8,
    vocab_size: 4096,
  },
  /** 110,709,504 parameters, 22 % of them the embedding. */
  'llama-110m': {
    ...llama,
    hidden_size: 768,
    intermediate_size: 2432,
    num_hidden_layers: 12,
    num_attention_heads: 12,
    vocab_size: 32_000,
  },
};
