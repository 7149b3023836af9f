import type { ExtraTensor, RecurrentMixer, NormPlacement } from './architecture.js';
import type { ConfigFields } from './config-fields.js';

/** A fixed property of the family, or a config field with the family's default. */
export type Rule = boolean | { field: string; fallback: boolean };

/**
 * Layers with a sliding window if `layer_types` is absent. all: every layer, if the window is set. upper: layers from
 * max_window_layers on, if use_sliding_window. switched: every layer, if use_sliding_window. alternate: even layers.
 * pattern: all except every sliding_window_pattern-th. chunks: layers with rotary positions, with chunks of
 * attention_chunk_size instead of windows (Llama 4).
 */
export type WindowRule = 'none' | 'all' | 'upper' | 'switched' | 'alternate' | 'pattern' | 'chunks';

export interface MoeFields {
  experts: readonly string[];
  expertSize: string;
  /** A separate size, a number of experts of the routed size, or none. */
  shared: { sizeField: string; gate: boolean } | { countField: string } | null;
  /**
   * every: all layers. step: decoder_sparse_step and mlp_only_layers. first-dense: first_k_dense_replace,
   * moe_layer_freq. interleaved: moe_layers or interleave_moe_layer_step (Llama 4). period: expert_layer_period and
   * _offset (Jamba). counted: all layers, unless there are no experts (Granite 4).
   */
  layers: 'every' | 'step' | 'first-dense' | 'interleaved' | 'period' | 'counted';
  /** A bias per expert that affects only the choice (DeepSeek V3 e_score_correction_bias). */
  routerBias: Rule;
  /** Biases of the router and of every expert. */
  bias?: boolean;
}

/**
 * Layers with a state instead of a cache. `layers` says which: every layer, those named so in `layer_types` (or
 * layers_block_type), all except every full_attention_interval-th, or all except attn_layer_period's (Jamba).
 */
export interface RecurrentFields {
  form: RecurrentMixer['form'];
  layers: 'every' | 'layer-types' | 'interval' | 'period';
  /** Norms of Jamba's step size and states. */
  innerNorms?: boolean;
}

export interface ExtraTensors {
  model: ExtraTensor[];
  layer: ExtraTensor[];
}

/** The family's fields for a name of decoder-only models; the first one present counts. */
export type FieldNames = Readonly<Record<string, readonly string[]>>;

/** The encoder of an encoder-decoder family; both stacks have the family's biases, norms and MLP. */
export interface EncoderFields {
  decoderNames: FieldNames;
  encoderNames: FieldNames;
  /** A norm of the embeddings. */
  embeddingNorm: boolean;
  /** The encoder has a learned table of positions, with the decoder's offset. */
  positions: boolean;
  convolutions: boolean;
  /** Whether the key projection has a bias, if it differs from the query's. */
  keyBias?: boolean;
  /** T5: a table of biases by distance in the first layer of each stack. umT5: in each layer. */
  positionBias: 'none' | 'first' | 'every';
}

export interface Family {
  name: string;
  attention: 'grouped' | 'latent';
  norm: 'rmsnorm' | 'layernorm';
  norms: NormPlacement | ((fields: ConfigFields) => NormPlacement);
  gated: boolean | ((fields: ConfigFields) => boolean);
  qkvBias: Rule;
  outputBias: Rule;
  mlpBias: Rule;
  lmHeadBias: boolean;
  qkNorm: 'none' | 'rmsnorm' | { field: string; kind: 'layernorm' | 'rmsnorm'; fallback?: boolean };
  qkNormWide?: boolean;
  outputGate?: boolean;
  sinks?: boolean;
  /** Number of KV heads, for configs that state it differently. */
  kvHeads?: (fields: ConfigFields, headCount: number) => number;
  tied: boolean;
  /** Default: a norm after the last layer. */
  finalNorm?: boolean;
  encoder?: EncoderFields;
  /** Learned positions have max positions + offset rows; rotary rotates this fraction of the head dimension. */
  positions: { kind: 'rotary'; fraction: number } | { kind: 'learned'; offset: number };
  window: WindowRule;
  moe: MoeFields | null;
  /** Width of layers without experts, if the config has a separate field for it. */
  denseSize?: string;
  recurrent?: RecurrentFields;
  extra?: (fields: ConfigFields, hiddenSize: number, layerCount: number) => ExtraTensors;
  /** Defaults of the family's class for fields that a published config.json omits. */
  defaults: Readonly<Record<string, number | boolean>>;
}
