import type { ConfigFields } from './config-fields.js';
import type { Family } from './family.js';

/** Encoder-decoder families; sources and checks as in families.ts. */

const base = {
  attention: 'grouped',
  lmHeadBias: false,
  qkNorm: 'none',
  tied: true,
  window: 'none',
  moe: null,
} as const;

const isGated = (fields: ConfigFields): boolean =>
  String(fields.raw('feed_forward_proj') ?? 'relu').startsWith('gated');
const t5Sizes = {
  hidden_size: ['d_model'],
  num_attention_heads: ['num_heads'],
  head_dim: ['d_kv'],
  intermediate_size: ['d_ff'],
} as const;
const t5: Family = {
  ...base,
  name: 'T5',
  norm: 'rmsnorm',
  norms: 'pre',
  gated: isGated,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  positions: { kind: 'rotary', fraction: 0 },
  encoder: {
    decoderNames: { ...t5Sizes, num_hidden_layers: ['num_decoder_layers', 'num_layers'] },
    encoderNames: { ...t5Sizes, num_hidden_layers: ['num_layers'] },
    embeddingNorm: false,
    positions: false,
    convolutions: false,
    positionBias: 'first',
  },
  defaults: { relative_attention_num_buckets: 32 },
};
const mt5: Family = {
  ...t5,
  name: 'mT5',
  gated: (fields) => fields.raw('feed_forward_proj') === undefined || isGated(fields),
};

const bartSizes = (stack: string) => ({
  hidden_size: ['d_model'],
  num_hidden_layers: [`${stack}_layers`],
  num_attention_heads: [`${stack}_attention_heads`],
  intermediate_size: [`${stack}_ffn_dim`],
});
const bart: Family = {
  ...base,
  name: 'BART',
  norm: 'layernorm',
  norms: 'post',
  finalNorm: false,
  gated: false,
  qkvBias: true,
  outputBias: true,
  mlpBias: true,
  positions: { kind: 'learned', offset: 2 },
  encoder: {
    decoderNames: bartSizes('decoder'),
    encoderNames: bartSizes('encoder'),
    embeddingNorm: true,
    positions: true,
    convolutions: false,
    positionBias: 'none',
  },
  defaults: {},
};
const whisper: Family = {
  ...bart,
  name: 'Whisper',
  norms: 'pre',
  finalNorm: true,
  positions: { kind: 'learned', offset: 0 },
  encoder: {
    ...bart.encoder!,
    decoderNames: { ...bartSizes('decoder'), max_position_embeddings: ['max_target_positions'] },
    encoderNames: { ...bartSizes('encoder'), max_position_embeddings: ['max_source_positions'] },
    embeddingNorm: false,
    convolutions: true,
    keyBias: false,
  },
};

/** Positions are sinusoids: a table without a learned weight, which the model stores and reads. */
const marian: Family = {
  ...bart,
  name: 'Marian',
  positions: { kind: 'learned', offset: 0 },
  encoder: { ...bart.encoder!, embeddingNorm: false },
};

export const encoderFamilies: Readonly<Record<string, Family>> = {
  t5,
  mt5,
  umt5: { ...mt5, name: 'umT5', encoder: { ...t5.encoder!, positionBias: 'every' } },
  bart,
  mbart: { ...bart, name: 'mBART', norms: 'pre', finalNorm: true },
  marian,
  pegasus: { ...marian, name: 'Pegasus', norms: 'pre', finalNorm: true },
  whisper,
};
