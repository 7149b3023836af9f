/** Names of one size across families. */
export const names = {
  hiddenSize: ['hidden_size', 'n_embd'],
  layers: ['num_hidden_layers', 'n_layer'],
  heads: ['num_attention_heads', 'n_head'],
  intermediate: ['intermediate_size', 'n_inner', 'ffn_dim', 'ffn_hidden_size'],
  positions: ['max_position_embeddings', 'n_positions'],
} as const;
